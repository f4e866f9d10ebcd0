"""What a window of the timeline looks like: pixels for many spans, the spans where they are few."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from stepscope.app.timeline.span_index import Counts
from stepscope.app.timeline.spans.packed import Bytes

Ref = tuple[str, int]


class SpanView(NamedTuple):
    """A span to show; `ref` is the table and the number of the row that it stands for.

    A block and the time for which it held its core share a ref. `parts` are the shares of the
    tokens of a mixed step that are of each of `palette.PARTS`; empty where they are not recorded.
    """

    lane: int
    start_ns: int
    end_ns: int
    state: int
    label: str
    ref: Ref
    parts: tuple[float, ...] = ()


Spans = list[SpanView] | None


class Picture:
    """What each pixel of some lanes shows: four arrays [lanes, width].

    `state`: what fills most of the pixel, 0 where there is nothing (and on counter lanes).
    `density`: the share of the pixel that is busy, 0..255, at least 1 where there is anything (on
    counter lanes: the value on its scale). `count`: spans that touch the pixel (on counter lanes: 1
    where there is a value, 0 before the first). `mark`: the one of `palette.MARKS` that the pixel
    has most of, though another state may fill it, or 0.
    """

    def __init__(self, lanes: Sequence[int], width: int, listed: Callable[[], list[Spans]]) -> None:
        self.lanes = tuple(lanes)
        shape = (len(self.lanes), width)
        self.state: Bytes = np.zeros(shape, np.uint8)
        self.density: Bytes = np.zeros(shape, np.uint8)
        self.count: Counts = np.zeros(shape, np.uint32)
        self.mark: Bytes = np.zeros(shape, np.uint8)
        self._listed = listed

    @cached_property
    def spans(self) -> list[Spans]:
        """Per lane the visible spans, None where they are too many; made when asked for."""
        return self._listed()
