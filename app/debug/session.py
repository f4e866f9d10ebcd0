"""A debug session: a position in a trace, and the engine's state there.

State is a function of the position alone: all that the trace recorded up to it. So it is the same
whether the position was reached forward, backward or by a jump.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property

import numpy as np
import polars as pl

from stepscope.app.debug.batch_members import known_left_out
from stepscope.app.debug.cores import Cores
from stepscope.app.debug.detail import StepDetail, detail_of
from stepscope.app.debug.empty import has_only_empty_batches, has_only_free_blocks
from stepscope.app.debug.engine_state import State
from stepscope.app.debug.moments import Moments, Position
from stepscope.app.debug.names import CoreName, core_names
from stepscope.app.debug.pools import Pool
from stepscope.app.debug.queues import Queues
from stepscope.app.debug.step_batches import Batches
from stepscope.app.debug.why import LeftOut, Reasons
from stepscope.app.timeline.lanes.bounds import bounds_of
from stepscope.ingest.derive.states import is_list_of_arrivals
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.times import EARLIEST_NS
from stepscope.ingest.trace import Trace

GRAINS = ("step", "event")
STATE_COLUMNS: dict[str, list[str]] = {
    "batch_rows": ["step", "row", "request", "phase", "num_tokens"],
    "lifecycle": ["ts_ns", "request", "event", "queue_index"],
    "queue_order": ["ts_ns", "index", "request", "queue"],
    "allocations": ["ts_ns", "resource", "id", "op", "owner"],
    "core_spans": ["rank", "ts_ns", "dispatch_ns", "end_ns", "slot", "core", "task", "block"],
}


WITH_STEPS = ("steps", "batch_rows")
"""Tables, the first that are looked at, of which a rank that is in them has steps."""
NEEDED = ("ts_ns", "step", "request", "id", "owner", "core", "task", "index")


class Session:
    """Steps through one rank of a trace; begins at its first step.

    A position at a step is the time when the step's batch was formed, after all that was decided
    for it. `grain` "event" also stops wherever anything changed in between.
    """

    def __init__(self, trace: Trace, rank: int | None = None) -> None:
        """Open a session on a rank; by default on the lowest that has steps, or else anything."""
        self.trace = trace
        self.rank = _first_rank(trace) if rank is None else rank
        self.moments = Moments(trace, self.rank)
        self._reasons = Reasons(trace, self.rank)
        knows_batches = trace.has("batch_rows") or has_only_empty_batches(trace, self.rank)
        self._batches = Batches(self._rows("batch_rows")) if knows_batches else None
        is_told = trace.has("lifecycle") and not is_list_of_arrivals(trace)
        orders = self._rows("queue_order")
        self._queues = Queues(self._rows("lifecycle"), orders) if is_told else None
        self._slots = self._pool("slot")
        self._kv_blocks = self._pool("kv-block", is_free=has_only_free_blocks(trace, self.rank))
        self._cores = Cores(self._rows("core_spans")) if trace.has("core_spans") else None
        self.position: Position = self._first()

    # ── moving ───────────────────────────────────────────────────────────────────────────────

    def next(self, grain: str = "step") -> bool:
        """Go to the next step or event; False at the end."""
        times = self._times(grain)
        if grain == "step":
            return self._to_step(self._step_place() + 1)
        place = int(np.searchsorted(times, self.position.ts_ns, "right"))
        return place < len(times) and self._to_time(int(times[place]))

    def back(self, grain: str = "step") -> bool:
        """Go back to where the step began, or to the step or event before; False at the start."""
        times = self._times(grain)
        if grain == "step":
            place = self._step_place()
            is_past_it = place >= 0 and self.position.ts_ns > times[place]
            return self._to_step(place if is_past_it else place - 1)
        place = int(np.searchsorted(times, self.position.ts_ns, "left")) - 1
        return place >= 0 and self._to_time(int(times[place]))

    def goto(self, *, step: int | None = None, ts_ns: int | None = None) -> bool:
        """Jump to a step or a time; False if already there.

        A time outside the trace goes to its start or end. Raises ConfigError for a step that the
        trace does not have.
        """
        if (step is None) == (ts_ns is None):
            raise ConfigError("goto takes a step or a time", todo="give one of the two")
        if step is not None:
            return self._goto_step(step)
        times = self.moments.event_ns
        if ts_ns is None or not len(times):
            return False
        return self._to_time(min(max(ts_ns, int(times[0])), int(times[-1])))

    # ── looking ──────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> State:
        """What the engine held at the position."""
        return self.state_at(self.position)

    def state_at(self, position: Position) -> State:
        """What the engine held at any position."""
        ts_ns, step = position
        waiting, running = self._queues.at(ts_ns) if self._queues else (None, None)
        return State(
            ts_ns,
            step,
            waiting,
            running,
            self._batches.of(step) if self._batches else None,
            self._slots.at(ts_ns) if self._slots else None,
            self._kv_blocks.at(ts_ns) if self._kv_blocks else None,
            self._cores.at(ts_ns) if self._cores else None,
        )

    def left_out(self) -> list[LeftOut]:
        """Who is not in the batch, and the recorded reason."""
        return self._reasons.left_out(self.state)

    def why(self, request: str) -> list[LeftOut]:
        """What was decided about a request up to here, the last decision first.

        Raises ConfigError naming near matches for a request that the trace does not have.
        """
        found = self._reasons.about(request, self.position.ts_ns)
        if not found and request not in (known := self._requests()):
            near = get_close_matches(request, known, n=3)
            todo = f"did you mean {', '.join(near)}?" if near else ""
            raise ConfigError(f"the trace has no request {request!r}", todo=todo)
        return found

    def detail(self) -> StepDetail:
        """What both fronts print about the position's step."""
        just_before = self.moments.position(max(self.position.ts_ns - 1, EARLIEST_NS))
        before = self.state_at(just_before)
        seen = detail_of(
            self.trace, self.rank, before, self.state, self.left_out(), self._core_names
        )
        return replace(seen, left_out=known_left_out(seen), first_ns=self._first_ns)

    # ── inside ───────────────────────────────────────────────────────────────────────────────

    def _first(self) -> Position:
        if self.moments.steps:
            return Position(int(self.moments.step_ns[0]), self.moments.steps[0])
        times = self.moments.event_ns
        return Position(int(times[0]) if len(times) else 0, None)

    def _times(self, grain: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        if grain not in GRAINS:
            raise ConfigError(f"no grain is called {grain!r}", todo=f"use {' or '.join(GRAINS)}")
        return self.moments.step_ns if grain == "step" else self.moments.event_ns

    def _step_place(self) -> int:
        step = self.position.step
        place = None if step is None else self.moments.place_of(step)
        return -1 if place is None else place

    def _goto_step(self, step: int) -> bool:
        place = self.moments.place_of(step)
        if place is not None:
            return self._to_step(place)
        steps = self.moments.steps
        todo = f"it has steps {min(steps)} to {max(steps)}" if steps else "it has no steps"
        raise ConfigError(f"the trace has no step {step}", todo=todo)

    def _to_step(self, place: int) -> bool:
        if not 0 <= place < len(self.moments.steps):
            return False
        return self._move(Position(int(self.moments.step_ns[place]), self.moments.steps[place]))

    def _to_time(self, ts_ns: int) -> bool:
        return self._move(self.moments.position(ts_ns))

    def _move(self, position: Position) -> bool:
        has_moved = position != self.position
        self.position = position
        return has_moved

    def _rows(self, table: str) -> pl.DataFrame:
        columns = STATE_COLUMNS[table]
        rows = self.trace.table(table).filter(pl.col("rank") == self.rank)
        needed = [column for column in columns if column in NEEDED]
        return rows.select(columns).drop_nulls(needed).collect()

    @cached_property
    def _core_names(self) -> dict[int, CoreName]:
        return core_names(self.trace, self.rank)

    @cached_property
    def _first_ns(self) -> int:
        return bounds_of(self.trace)[0]

    def _pool(self, resource: str, *, is_free: bool = False) -> Pool | None:
        rows = self._rows("allocations").filter(pl.col("resource") == resource)
        return Pool(rows) if len(rows) or is_free else None

    def _requests(self) -> list[str]:
        names = [self.trace.table(table).select("request") for table in ("lifecycle", "batch_rows")]
        return pl.concat(names).unique().collect()["request"].sort().to_list()


def _first_rank(trace: Trace) -> int:
    tables = ("steps", *STATE_COLUMNS)
    lowest = [trace.table(table).select(pl.col("rank").min()) for table in tables]
    found = [frame["rank"][0] for frame in pl.collect_all(lowest)]
    with_steps, others = found[: len(WITH_STEPS)], found[len(WITH_STEPS) :]
    known = [[rank for rank in ranks if rank is not None] for ranks in (with_steps, others)]
    return min(known[0] or known[1], default=0)
