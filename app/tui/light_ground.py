"""The colours of a light ground, put in place of the palette's where lines are drawn.

Whatever draws names the palette's colours, which stand on a dark ground; `app/light.py` says what
each is on a light one. A mixture is that of its parts.
"""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color as Ink
from rich.style import Style

from stepscope.app import light
from stepscope.app.tui.cell_strip import StyleFilter
from stepscope.app.tui.ink import BACKGROUND, TEXT, mixed, parts_of

WRITTEN = (BACKGROUND, TEXT)
"""What text on the colour of a span is written in, on a dark ground; an `edge` is no text."""


class LightGround(StyleFilter):
    """Draws all lines in the colours of a light ground."""

    def style(self, style: Style) -> Style:
        """A style with the colours of a light ground."""
        return in_light(style)


@lru_cache(maxsize=4096)
def in_light(style: Style) -> Style:
    """A style with the colours of a light ground; what is no colour of the palette stays."""
    ground = _light(style.bgcolor)
    is_on_span = style.bgcolor is not None and _hex(style.bgcolor) not in light.SURFACES.values()
    is_text = style.bold is not False
    if is_text and is_on_span and ground is not None and _hex(style.color) in WRITTEN:
        written: str | None = light.ink(ground)
    else:
        written = _light(style.color)
    return style + Style(color=written, bgcolor=ground)


def _light(of: Ink | None) -> str | None:
    """A colour on a light ground; None where there is none, or one of the terminal's own."""
    told = _hex(of)
    return None if told is None else _lightened(told)


def _lightened(of: str) -> str:
    if (parts := parts_of(of)) is not None:
        above, below, share = parts
        return mixed(_lightened(above), _lightened(below), share)
    return light.colour(of, is_light=True)


def _hex(of: Ink | None) -> str | None:
    return of.triplet.hex.upper() if of is not None and of.triplet is not None else None
