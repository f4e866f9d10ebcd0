"""The palette as a Textual theme, so that style sheets name the same colours."""

from __future__ import annotations

from textual.theme import Theme

from stepscope.app.palette import SEVERITY_MARKS
from stepscope.app.tui.ink import ACCENT, BACKGROUND, BORDER, MUTED, PANEL, RAISED, TEXT

STEPSCOPE = Theme(
    name="stepscope",
    primary=ACCENT,
    accent=ACCENT,
    error=SEVERITY_MARKS["error"].colour,
    warning=SEVERITY_MARKS["warning"].colour,
    foreground=TEXT,
    background=BACKGROUND,
    surface=PANEL,
    panel=RAISED,
    variables={
        "border": BORDER,
        "border-blurred": BORDER,
        "text-muted": MUTED,
        "scrollbar": BORDER,
        "scrollbar-hover": MUTED,
        "scrollbar-active": ACCENT,
        "scrollbar-background": BACKGROUND,
        "scrollbar-background-hover": BACKGROUND,
        "scrollbar-background-active": BACKGROUND,
        "scrollbar-corner-color": BACKGROUND,
        "input-cursor-background": ACCENT,
    },
)
