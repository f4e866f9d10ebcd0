"""The positions of a rank at which a debug session can stop: its steps, every change, every event.

A step is stood at when its batch was formed: behind all that was decided for it, and before all
that followed from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.debug.formed import formed_steps
from stepscope.app.debug.held.flat_rows import FlatRows
from stepscope.ingest.derive.order import Order
from stepscope.ingest.derive.order_runs import OrderRuns
from stepscope.ingest.trace import Trace

Times = npt.NDArray[np.int64]
Ends = tuple[int, int]
CHANGES = (
    ("lifecycle", "ts_ns"), ("allocations", "ts_ns"), ("queue_order", "ts_ns"),
    ("slot_tokens", "ts_ns"),
    ("core_spans", "dispatch_ns"), ("core_spans", "ts_ns"), ("core_spans", "end_ns"),
    ("core_waits", "ts_ns"),
    ("tasks", "queued_ns"), ("tasks", "dequeued_ns"), ("ready_order", "ts_ns"),
    ("thread_phases", "ts_ns"),
)  # fmt: skip
"""Which times are of changes, beside those at which batches are formed."""


class Position(NamedTuple):
    """A place in what a rank's trace tells: all rows up to `seq` are applied, and none behind.

    `step` is the last one whose batch was formed by then, and `ts_ns` when that was. Both `step`
    and `seq` are None before the first.
    """

    rank: int
    step: int | None
    seq: int | None
    ts_ns: int


def ends_of(times: Iterable[pl.LazyFrame]) -> list[Ends]:
    """The first and the last of each of some frames of times that has any."""
    ends = (pl.all().min().alias("first"), pl.all().max().alias("last"))
    frames = pl.collect_all([found.select(ends) for found in times])
    return [(row[0], row[1]) for frame in frames for row in frame.rows() if None not in row]


class Moments:
    """Steps in the order in which their batches were formed, all changes, and all events' times."""

    def __init__(
        self,
        trace: Trace,
        rank: int,
        order: Order | None = None,
        steps: FlatRows | None = None,
        event_ends: Sequence[Ends] | None = None,
    ) -> None:
        """Take a rank's order, what `formed_steps` says, and the ends of CHANGES, where known."""
        self._event_ends = event_ends
        self._trace = trace
        self._rank = rank
        self._of_rank = pl.col("rank") == rank
        self.order = self._order = order or Order(trace, rank)
        if steps is None:
            steps = FlatRows.of(formed_steps(self._order, is_closed=trace.manifest.closed))
        self.step_ns: Times = steps.numbers("ts_ns").astype(np.int64, copy=False)
        self.step_seq: Times = steps.numbers("seq").astype(np.int64, copy=False)
        told = steps.numbers("step").astype(np.int64, copy=False)
        self.steps: list[int] = told.tolist()
        self._latest_ns: Times = np.maximum.accumulate(self.step_ns)
        self._by_number = np.argsort(told, kind="stable")
        self._numbers = told[self._by_number]

    @property
    def changes(self) -> OrderRuns:
        """Every change's place in the order of all."""
        return self._order.runs

    @cached_property
    def event_ns(self) -> Times:
        """Every time at which something changed, once each, in order."""
        times = [found.unique().collect().to_series().to_numpy() for found in self._times()]
        return np.unique(np.concatenate([*times, self.step_ns]))

    @cached_property
    def event_bounds(self) -> tuple[int, int] | None:
        """The first and the last time at which something changed, without all between them."""
        known = [*(ends_of(self._times()) if self._event_ends is None else self._event_ends)]
        if len(self.step_ns):
            known.append((int(self.step_ns.min()), int(self.step_ns.max())))
        if not known:
            return None
        firsts, lasts = zip(*known, strict=True)
        return min(firsts), max(lasts)

    def event_after(self, ts_ns: int) -> int | None:
        """The next time at which something changed; None at the end."""
        place = int(np.searchsorted(self.event_ns, ts_ns, "right"))
        return int(self.event_ns[place]) if place < len(self.event_ns) else None

    def event_before(self, ts_ns: int) -> int | None:
        """The last time before at which something changed; None at the start."""
        place = int(np.searchsorted(self.event_ns, ts_ns)) - 1
        return int(self.event_ns[place]) if place >= 0 else None

    def ready(self) -> None:
        """Find all events now, which takes seconds where there are many, and not when asked."""
        _ = self.event_ns

    def place_of(self, step: int) -> int | None:
        """Place of a step in the order of steps; None where there is no such step."""
        found = int(np.searchsorted(self._numbers, step))
        is_there = found < len(self._numbers) and int(self._numbers[found]) == step
        return int(self._by_number[found]) if is_there else None

    def step_at(self, ts_ns: int) -> int | None:
        """Place of the last step whose batch was formed by then; None before the first."""
        place = int(np.searchsorted(self._latest_ns, ts_ns, "right")) - 1
        return place if place >= 0 else None

    def position(self, ts_ns: int) -> Position:
        """The position at a time."""
        place, seq = self.step_at(ts_ns), self._order.last_by(ts_ns)
        following = 0 if place is None else place + 1
        if following < len(self.steps):
            seq = min(seq, int(self.step_seq[following]) - 1)
        if place is None:
            return Position(self._rank, None, self._known(seq), ts_ns)
        seq = max(seq, int(self.step_seq[place]))
        return Position(self._rank, self.steps[place], self._known(seq), ts_ns)

    def at_step(self, place: int) -> Position:
        """The position at which the batch of the step at a place had been formed."""
        seq = self._known(int(self.step_seq[place]))
        return Position(self._rank, self.steps[place], seq, int(self.step_ns[place]))

    def at_seq(self, seq: int) -> Position:
        """The position behind a change."""
        place = int(np.searchsorted(self.step_seq, seq, "right")) - 1
        if place >= 0 and seq == self.step_seq[place]:
            return self.at_step(place)
        step_ns = [int(self._latest_ns[place])] if place >= 0 else []
        step = self.steps[place] if place >= 0 else None
        return Position(self._rank, step, seq, max([self._order.time_of(seq), *step_ns]))

    def forming_at(self, position: Position) -> int | None:
        """The step of which something is told at a position, and whose batch is not formed yet."""
        step = None if position.seq is None else self._order.step_of(position.seq)
        if step is None or step == position.step:
            return None
        place = self.place_of(step)
        is_formed = place is not None and self.step_seq[place] <= (position.seq or 0)
        return None if is_formed else step

    def _known(self, seq: int) -> int | None:
        ends = self.changes.ends()
        return seq if ends and seq >= ends[0] else None

    def _times(self) -> list[pl.LazyFrame]:
        return [
            self._trace.table(table).filter(self._of_rank).select(column).drop_nulls()
            for table, column in CHANGES
        ]
