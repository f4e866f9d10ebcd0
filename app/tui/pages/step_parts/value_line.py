"""A value over the run as a line of glyphs, with a mark below where one stands."""

from __future__ import annotations

import numpy as np

from stepscope.app.debug.shown.sparkline import sparkline
from stepscope.app.debug.shown.value_over_run import ValueOverRun
from stepscope.app.palette import COUNTER, STATES
from stepscope.app.present.blocks import Runs, Tone
from stepscope.app.tui.ink import ACCENT, PANEL, ink
from stepscope.app.tui.widgets.prose import Painted, Shown
from stepscope.app.tui.widgets.text_bar import Piece


def value_blocks(value: ValueOverRun, here_ns: int, width: int) -> list[Shown]:
    """The line, `width` cells wide; a click on a glyph goes to where its time begins."""
    width = max(width, 1)
    style = ink(STATES[COUNTER].colour, PANEL)
    begins = np.linspace(*value.line.bounds_ns, width + 1)[:-1].astype(np.int64).tolist()
    line = [
        Piece(glyph, style, f"focused.at_time({ts_ns})")
        for glyph, ts_ns in zip(sparkline(value.line, width), begins, strict=True)
    ]
    mark = " " * value.line.column(here_ns, width) + "^"
    return [
        Runs(((f"{value.expression} ", Tone.MUTED), (value.told(here_ns), Tone.TEXT))),
        Painted(tuple(line)),
        Painted((Piece(mark, ink(ACCENT, PANEL)),)),
    ]
