"""Spans as a front shows them: made of an index's columns, with their labels, for the few shown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from stepscope.app.timeline.lanes.labels import STEP_OF_BATCH, Labels
from stepscope.app.timeline.lanes.lane import TABLES, Lane
from stepscope.app.timeline.picture import SpanView
from stepscope.app.timeline.span_index import SpanIndex
from stepscope.ingest.trace import Trace


class SpanViews:
    """Makes spans of their places in an index; labels are looked up in the trace."""

    def __init__(self, trace: Trace, lanes: Sequence[Lane]) -> None:
        self._trace = trace
        self._lanes = lanes

    @cached_property
    def _labels(self) -> Labels:
        return Labels(self._trace)

    def of(self, lane: int, index: SpanIndex, places: range) -> list[SpanView]:
        """The spans at these places, which are on one lane."""
        window = slice(places.start, places.stop)
        tables, rows = index.table[window].tolist(), index.ref[window].tolist()
        states = index.state[window].tolist()
        labels = [""] * len(rows)
        for code in set(tables):
            own = [place for place, table in enumerate(tables) if table == code]
            named = self._named_by(lane, TABLES[code])
            names = self._labels.of(named, [rows[p] for p in own], [states[p] for p in own])
            for place, name in zip(own, names, strict=True):
                labels[place] = name
        starts, ends = index.starts[window].tolist(), index.ends(window).tolist()
        return [
            SpanView(lane, start, end, state, label, (TABLES[table], row))
            for start, end, state, label, table, row in zip(
                starts, ends, states, labels, tables, rows, strict=True
            )
        ]

    def _named_by(self, lane: int, table: str) -> str:
        is_batch = table == "batch_rows" and self._lanes[lane].section == "steps"
        return STEP_OF_BATCH if is_batch else table
