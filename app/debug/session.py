"""A debug session: a position in a trace, and the engine's state there.

State is a function of the position alone: all that the trace tells up to it, in the order of `seq`.
So it is the same whether the position was reached forward, backward or by a jump.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property

import polars as pl

from stepscope.app.debug.batch_members import known_left_out
from stepscope.app.debug.cores import Cores
from stepscope.app.debug.detail import StepDetail, detail_of
from stepscope.app.debug.engine_state import Forming, State
from stepscope.app.debug.formed import BEFORE_ALL
from stepscope.app.debug.held.index import STATE_COLUMNS, Part, bounds_in, events_in, order_of
from stepscope.app.debug.held.index_files import index_of
from stepscope.app.debug.held.near_rows import NearRows
from stepscope.app.debug.held.pools import Pool
from stepscope.app.debug.held.queue_spans import QueueSpans
from stepscope.app.debug.held.queues import Queues
from stepscope.app.debug.held.ready_queues import ReadyQueues
from stepscope.app.debug.held.slot_lengths import SlotLengths
from stepscope.app.debug.held.thread_phases import ThreadPhases
from stepscope.app.debug.moments import Moments, Position
from stepscope.app.debug.names import CoreName, core_names
from stepscope.app.debug.reasons import LeftOut, Reasons
from stepscope.app.debug.step_batches import Batches
from stepscope.app.debug.verifying.told_by_steps import Mismatch, mismatches
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.times import EARLIEST_NS
from stepscope.ingest.trace import Trace

GRAINS = ("step", "seq", "event")
WITH_STEPS = ("steps", "batch_rows")
"""Tables, the first that are looked at, of which a rank that is in them has steps."""


class Session:
    """Steps through one rank of a trace; begins at its first step.

    A position at a step is behind all that was decided for its batch. `grain` "seq" stops behind
    every row that tells of a change, "event" at every time at which anything changed, on the device
    too.
    """

    def __init__(self, trace: Trace, rank: int | None = None) -> None:
        """Open a session on a rank; by default on the lowest that has steps, or else anything."""
        self.trace = trace
        self.rank = _first_rank(trace) if rank is None else rank
        index = index_of(trace, self.rank)
        self.bounds_ns = bounds_in(index)
        self.told_steps = (index["steps"] or {})["told"]
        steps = (index["steps"] or {})["formed"]
        order, events = order_of(trace, self.rank, index), events_in(index)
        self.moments = Moments(trace, self.rank, order, steps, events)
        self.reasons = Reasons(**index["reasons"] or {})
        self._batches = Batches(**part) if (part := index["batches"]) is not None else None
        self._queues = _queues(index["queues"])
        self._slots = Pool(**part) if (part := index["slots"]) is not None else None
        self._kv_blocks = Pool(**part) if (part := index["kv_blocks"]) is not None else None
        self._lengths = SlotLengths(**part) if (part := index["slot_tokens"]) is not None else None
        self._cores = Cores(**part) if (part := index["cores"]) is not None else None
        self._ready = ReadyQueues(**part) if (part := index["ready"]) is not None else None
        self._threads = ThreadPhases(**part) if (part := index["threads"]) is not None else None
        self._near = NearRows(trace, self.rank)
        self._index = index  # while it lives, its files stay
        self.position: Position = self._first()

    # ── moving ───────────────────────────────────────────────────────────────────────────────

    def next(self, grain: str = "step") -> bool:
        """Go to the next step, change or event; False at the end."""
        _known(grain)
        if grain == "step":
            return self._to_step(self._step_place() + 1)
        stop = (
            self.moments.changes.after(self._seq)
            if grain == "seq"
            else self.moments.event_after(self.position.ts_ns)
        )
        return stop is not None and self._to(grain, stop)

    def back(self, grain: str = "step") -> bool:
        """Go back to where the step was formed, or to the step, change or event before.

        False at the start.
        """
        _known(grain)
        if grain == "step":
            place = self._step_place()
            formed = self.moments.at_step(place) if place >= 0 else self.position
            is_past_it = (self._seq, self.position.ts_ns) > (formed.seq or 0, formed.ts_ns)
            return self._to_step(place if is_past_it else place - 1)
        stop = (
            self.moments.changes.before(self._seq)
            if grain == "seq"
            else self.moments.event_before(self.position.ts_ns)
        )
        return stop is not None and self._to(grain, stop)

    def goto(
        self, *, step: int | None = None, seq: int | None = None, ts_ns: int | None = None
    ) -> bool:
        """Jump to a step, behind a change, or to a time; False if already there.

        A change or a time outside the trace goes to its start or end, and one that nothing bears
        to the last before it. Raises ConfigError for a step that the trace does not have.
        """
        if sum(place is not None for place in (step, seq, ts_ns)) != 1:
            raise ConfigError("goto takes a step, a seq or a time", todo="give one of the three")
        if step is not None:
            return self._goto_step(step)
        if ts_ns is not None:
            within_ns = self.moments.event_bounds
            if within_ns is None:
                return False
            first_ns, last_ns = within_ns
            return self._to("event", min(max(ts_ns, first_ns), last_ns))
        ends = self.moments.changes.ends()
        if seq is None or ends is None:
            return False
        return self._to("seq", max(self.moments.changes.before(seq + 1) or 0, ends[0]))

    # ── looking ──────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> State:
        """What the engine held at the position."""
        return self.state_at(self.position)

    def state_at(self, position: Position) -> State:
        """What the engine held at any position."""
        _, step, last, ts_ns = position
        seq = BEFORE_ALL if last is None else last
        waiting, running = self._queues.at(seq) if self._queues else (None, None)
        forming = self.moments.forming_at(position)
        return State(
            ts_ns,
            step,
            waiting,
            running,
            self._batches.of(step) if self._batches else None,
            self._slots.at(seq) if self._slots else None,
            self._kv_blocks.at(seq) if self._kv_blocks else None,
            self._cores.at(ts_ns) if self._cores else None,
            last,
            None if forming is None or self._batches is None
            else Forming(forming, self._batches.of(forming, seq)),
            self._lengths.at(seq) if self._lengths else None,
            self._ready.at(ts_ns) if self._ready else None,
            self._threads.at(ts_ns) if self._threads else None,
        )  # fmt: skip

    def left_out(self) -> list[LeftOut]:
        """Who is not in the batch, and the recorded reason."""
        return self.reasons.left_out(self.state)

    def why(self, request: str) -> list[LeftOut]:
        """What was decided about a request up to here, the last decision first.

        Raises ConfigError naming near matches for a request that the trace does not have.
        """
        found = self.reasons.about(request, self._seq)
        if found or self.reasons.knows(request):
            return found
        if request not in (known := self._requests()):
            near = get_close_matches(request, known, n=3)
            todo = f"did you mean {', '.join(near)}?" if near else ""
            raise ConfigError(f"the trace has no request {request!r}", todo=todo)
        return found

    def detail(self) -> StepDetail:
        """What both fronts print about the position's step."""
        just_before = self.moments.position(max(self.position.ts_ns - 1, EARLIEST_NS))
        before = self.state_at(just_before)
        seen = detail_of(
            self.trace, self.rank, self._near, before, self.state, self.left_out(), self._core_names
        )
        return replace(seen, left_out=known_left_out(seen), first_ns=self.bounds_ns[0])

    def verify(self) -> list[Mismatch]:
        """Where the state at a step is not what the step counted: nowhere, if all was told."""
        places = range(len(self.moments.steps))
        states = (self.state_at(self.moments.at_step(place)) for place in places)
        return list(mismatches(self.trace, self.rank, states))

    # ── inside ───────────────────────────────────────────────────────────────────────────────

    def _first(self) -> Position:
        if self.moments.steps:
            return self.moments.at_step(0)
        times = self.moments.event_ns
        return self.moments.position(int(times[0]) if len(times) else self.bounds_ns[0])

    @property
    def _seq(self) -> int:
        return BEFORE_ALL if self.position.seq is None else self.position.seq

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
        return self._move(self.moments.at_step(place))

    def _to(self, grain: str, stop: int) -> bool:
        reached = self.moments.at_seq if grain == "seq" else self.moments.position
        return self._move(reached(stop))

    def _move(self, position: Position) -> bool:
        has_moved = position != self.position
        self.position = position
        return has_moved

    @cached_property
    def _core_names(self) -> dict[int, CoreName]:
        return core_names(self.trace, self.rank)

    def _requests(self) -> list[str]:
        names = [self.trace.table(table).select("request") for table in ("lifecycle", "batch_rows")]
        return pl.concat(names).unique().collect()["request"].sort().to_list()


def _known(grain: str) -> None:
    if grain not in GRAINS:
        raise ConfigError(f"no grain is called {grain!r}", todo=f"use {', '.join(GRAINS)}")


def _queues(part: Part) -> QueueSpans | Queues | None:
    if part is None:
        return None
    return QueueSpans(**part) if "waiting" in part else Queues(**part)


def _first_rank(trace: Trace) -> int:
    tables = ("steps", *STATE_COLUMNS)
    lowest = [trace.table(table).select(pl.col("rank").min()) for table in tables]
    found = [frame["rank"][0] for frame in pl.collect_all(lowest)]
    with_steps, others = found[: len(WITH_STEPS)], found[len(WITH_STEPS) :]
    known = [[rank for rank in ranks if rank is not None] for ranks in (with_steps, others)]
    return min(known[0] or known[1], default=0)
