"""The palette on a light ground: what each of its colours is there, and the ink on each."""

from __future__ import annotations

from stepscope.app.palette import (
    ACCENT,
    BACKGROUND,
    BORDER,
    FLAG,
    HIT,
    MUTED,
    PANEL,
    RAISED,
    SEVERITY_MARKS,
    STATES,
    TEXT,
)

_ON_LIGHT = {
    BACKGROUND: "#FFFFFF", PANEL: "#F6F8FA", RAISED: "#EAEEF2", BORDER: "#D0D7DE",
    TEXT: "#1F2328", MUTED: "#57606A", ACCENT: "#0B5FD6", HIT: "#A8228A", FLAG: "#1A7F4B",
    "#5B6472": "#6B768A", "#46C3FE": "#0A99EF", "#F5B971": "#C08523", "#F95213": "#B1110B",
    "#AC5DD2": "#9004C2", "#E6FAFA": "#001432",
    "#5D5E9E": "#9986E2", "#51B9BD": "#3C8B82", "#F2E962": "#867701", "#3D4754": "#4D5869",
    "#E69F00": "#A36B0C", "#56B4E9": "#075B9A", "#009E73": "#28A77C", "#F0E442": "#AE910B",
    "#0072B2": "#3377BE", "#D55E00": "#A13204", "#CC79A7": "#82445B", "#8A8F98": "#7A808A",
    "#6D71DB": "#668FFB", "#F4A42C": "#AC821C", "#90FED5": "#1B652F", "#E0405A": "#F054A6",
    "#A6ACF2": "#794495", "#EAFF00": "#450066",
    "#FFF1C9": "#241A00", "#A3D93B": "#4E7D00", "#9A875A": "#6B5A2E", "#5E9470": "#3F6B4C",
    "#92550C": "#B0601F", "#3F619E": "#4A679D", "#85886D": "#7D8C99", "#21989B": "#2784BF",
    "#7E6D55": "#947B64", "#547899": "#736057",
    "#7F8B9B": "#5B6472", "#F5B972": "#7A4E00",
}  # fmt: skip
"""Chosen as the dark ones were: hues kept, 3:1 against the ground, and told apart by every eye.

Findings are words as well, so a warning is darker than the decode that it looks like else.
"""
SURFACES = {
    "background": BACKGROUND, "panel": PANEL, "raised": RAISED, "border": BORDER, "text": TEXT,
    "muted": MUTED, "accent": ACCENT, "hit": HIT, "flag": FLAG,
}  # fmt: skip
"""The colours of a page by what they are for."""
INKS = ("#000000", "#FFFFFF")
"""What text on a span can be written in."""


def colour(of: str, *, is_light: bool) -> str:
    """A colour of the palette as it is on a light ground, or as it is."""
    return _ON_LIGHT.get(of.upper(), of) if is_light else of


def surfaces(*, is_light: bool) -> dict[str, str]:
    """The colours of a page, and those of findings, by what they are for."""
    of_findings = {severity: mark.colour for severity, mark in SEVERITY_MARKS.items()}
    named = {**SURFACES, **of_findings}
    return {name: colour(of, is_light=is_light) for name, of in named.items()}


def drawn() -> tuple[str, ...]:
    """Every colour of the palette that something is drawn in."""
    marks = (mark.colour for mark in SEVERITY_MARKS.values())
    return tuple(dict.fromkeys((*SURFACES.values(), *(each.colour for each in STATES), *marks)))


def ink(ground: str) -> str:
    """The colour of text that is read best on a ground of this colour."""
    return max(INKS, key=lambda text: contrast(text, ground))


def contrast(one: str, other: str) -> float:
    """How far two colours stand apart, as WCAG 2 defines it: 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(of: str) -> float:
    """Relative luminance of `#RRGGBB` as WCAG 2 defines it."""
    parts = [int(of[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
