"""The spans of an area: those that touch its range on its lanes, cut at its edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.palette import WAITING
from stepscope.app.timeline.area.span_names import Codes, SpanNames
from stepscope.app.timeline.lanes.waiting_queue import WAITING_QUEUE
from stepscope.app.timeline.span_index import Section
from stepscope.app.timeline.spans.packed import Bytes, concatenated

COLUMNS = {
    "lane": pl.Int32, "start": pl.Int64, "ns": pl.Int64, "is_cut": pl.Boolean, "kind": pl.UInt8,
    "name": pl.Int32, "state": pl.Int32,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Area:
    """Some lanes, by their numbers, over the range [start_ns, end_ns)."""

    start_ns: int
    end_ns: int
    lanes: tuple[int, ...]

    @property
    def ns(self) -> int:
        """How long the range is."""
        return self.end_ns - self.start_ns


def spans_in(area: Area, sections: Sequence[Section], names: SpanNames) -> pl.DataFrame:
    """A row for each span that touches the area, by lane and time.

    `start` is where its part in the area begins, `ns` how long that is, `is_cut` whether it goes on
    outside; `kind` is its state in the palette, `name` and `state` are numbers of `names`.
    """
    found = [
        _of_section(area, section, names)
        for section in sections
        if any(_is_in(section, lane) for lane in area.lanes)
    ]
    return pl.concat(found) if found else pl.DataFrame(schema=COLUMNS)


def _is_in(section: Section, lane: int) -> bool:
    return 0 <= lane - section.first_lane < len(section.index.offsets) - 1


def _of_section(area: Area, section: Section, names: SpanNames) -> pl.DataFrame:
    index = section.index
    lanes = np.array([lane for lane in area.lanes if _is_in(section, lane)], np.int64)
    low, high = index.visible_in(lanes - section.first_lane, area.start_ns, area.end_ns).T
    places, ref = concatenated(low, high), index.ref.stretches(low, high).astype(np.uint32)
    began = index.starts.stretches(low, high)
    ended = began + index.lengths.stretches(low, high)
    start, end = np.maximum(began, area.start_ns), np.minimum(ended, area.end_ns)
    kind = index.state[places]
    if section.name == WAITING_QUEUE:  # whose shades tell requests apart
        kind = np.full_like(kind, WAITING)
    name, state = _called(index.table[places], kind, ref, names)
    is_cut = (began < area.start_ns) | (ended > area.end_ns)
    columns = {
        "lane": np.repeat(lanes, high - low), "start": start, "ns": np.maximum(end - start, 0),
        "is_cut": is_cut, "kind": kind, "name": name, "state": state,
    }  # fmt: skip
    return pl.DataFrame(columns).cast(COLUMNS)  # type: ignore[arg-type]  # types by name


def _called(
    table: Bytes, kind: Bytes, ref: npt.NDArray[np.uint32], names: SpanNames
) -> tuple[Codes, Codes]:
    name, state = np.zeros((2, len(table)), np.int32)
    for code in np.unique(table).tolist():
        own = table == code
        name[own] = names.name(code, ref[own], kind[own])
        state[own] = names.state(code, ref[own], kind[own])
    return name, state
