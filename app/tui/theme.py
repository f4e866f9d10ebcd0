"""The palette as Textual themes, dark and light, so that style sheets name the same colours."""

from __future__ import annotations

import os

from textual.theme import Theme

from stepscope.app.light import surfaces

DARK, LIGHT = "stepscope", "stepscope-light"
LIGHT_GROUNDS = ("7", "15")
"""What a terminal calls white and bright white."""


def theme(*, is_light: bool) -> Theme:
    """The theme of a dark ground, or of a light one."""
    of = surfaces(is_light=is_light)
    background, border, muted, accent = (
        of[name] for name in ("background", "border", "muted", "accent")
    )
    return Theme(
        name=LIGHT if is_light else DARK,
        dark=not is_light,
        primary=accent,
        accent=accent,
        error=of["error"],
        warning=of["warning"],
        foreground=of["text"],
        background=background,
        surface=of["panel"],
        panel=of["raised"],
        variables={
            "border": border,
            "border-blurred": border,
            "text-muted": muted,
            "scrollbar": border,
            "scrollbar-hover": muted,
            "scrollbar-active": accent,
            "scrollbar-background": background,
            "scrollbar-background-hover": background,
            "scrollbar-background-active": background,
            "scrollbar-corner-color": background,
            "input-cursor-background": accent,
        },
    )


def is_light_ground() -> bool:
    """Whether the terminal says that its ground is light; many say so in COLORFGBG, others not."""
    return os.environ.get("COLORFGBG", "").rpartition(";")[2] in LIGHT_GROUNDS
