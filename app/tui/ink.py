"""Styles: the palette's colours as Rich styles, cached so that runs of equal style merge."""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color
from rich.style import Style

from stepscope.app import palette
from stepscope.app.present.blocks import Tone

BACKGROUND, PANEL, RAISED, BORDER = (
    palette.BACKGROUND,
    palette.PANEL,
    palette.RAISED,
    palette.BORDER,
)
TEXT, MUTED, ACCENT = palette.TEXT, palette.MUTED, palette.ACCENT
TONES = {
    Tone.TEXT: TEXT,
    Tone.MUTED: MUTED,
    **{Tone(name): mark.colour for name, mark in palette.SEVERITY_MARKS.items()},
}
"""The colour of each tone of a block."""


@lru_cache(maxsize=2048)
def ink(foreground: str, background: str | None = None, *, bold: bool = False) -> Style:
    """The style of a foreground on a background, both `#RRGGBB`; the same object every time."""
    return Style(
        color=Color.parse(foreground),
        bgcolor=Color.parse(background) if background else None,
        bold=bold or None,
    )


@lru_cache(maxsize=2048)
def edge(foreground: str, background: str) -> Style:
    """The style of a glyph that is part of a shape, and no text: it is said not to be bold."""
    return Style(color=Color.parse(foreground), bgcolor=Color.parse(background), bold=False)


@lru_cache(maxsize=256)
def on(background: str) -> Style:
    """A background alone, to lay over what is there."""
    return Style(bgcolor=Color.parse(background))


_PARTS: dict[str, tuple[str, str, float]] = {}


@lru_cache(maxsize=512)
def blend(above: str, below: str, share: float) -> str:
    """The colour that `above` makes on `below` when it covers a share of it."""
    made = mixed(above, below, share)
    if made not in (above, below):
        _PARTS[made] = above, below, share
    return made


def parts_of(colour: str) -> tuple[str, str, float] | None:
    """What a colour was blended of, and the share of the first; None of one that was not."""
    return _PARTS.get(colour)


def mixed(above: str, below: str, share: float) -> str:
    """A share of one colour and the rest of another, both `#RRGGBB`."""
    pairs = zip(_channels(above), _channels(below), strict=True)
    return "#" + "".join(f"{round(a * share + b * (1 - share)):02X}" for a, b in pairs)


def readable_on(background: str) -> str:
    """Text colour with the better contrast on a background: the darkest or the lightest we have."""
    red, green, blue = _channels(background)
    luminance = 0.299 * red + 0.587 * green + 0.114 * blue
    return BACKGROUND if luminance > 120 else TEXT


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
