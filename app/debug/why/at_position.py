"""What a chain looks at: one position, the state there, and the rows until it."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

import polars as pl

from stepscope.app.debug.engine_state import State
from stepscope.app.debug.formed import BEFORE_ALL
from stepscope.app.debug.moments import Position
from stepscope.app.debug.session import Session
from stepscope.app.debug.why.chain import Proof
from stepscope.app.debug.why.evidence import Evidence
from stepscope.app.debug.why.rows_by_name import Row
from stepscope.app.units import moment
from stepscope.ingest.derive.states import ENDS, ENTERS, LEAVES

MOVES = (*ENTERS, *LEAVES, *ENDS)


class View:
    """A position of a session; everything that is asked of it is asked of this moment."""

    def __init__(self, session: Session, at: Position) -> None:
        self.session, self.at = session, at
        self.told = Evidence.of(session)
        self.seq = BEFORE_ALL if at.seq is None else at.seq

    @cached_property
    def state(self) -> State:
        """The engine's state at the position."""
        return self.session.state_at(self.at)

    @cached_property
    def batch(self) -> frozenset[str]:
        """Who is in the batch."""
        return frozenset(entry.request for entry in self.state.batch or ())

    @cached_property
    def places(self) -> dict[str, int]:
        """Who waits, by the place in the queue."""
        return {name: place for place, name in enumerate(self.state.waiting or ())}

    def holders(self, resource: str) -> Counter[str] | None:
        """How much of a resource each holds, in the order of who runs; None where not known.

        Where no slot changes hands in the trace, each request that runs is taken to have one.
        """
        if resource == "seat" or (resource == "slot" and not self.state.slots):
            return None if self.state.running is None else Counter(self.state.running)
        held = self.state.kv_blocks if resource == "kv-block" else self.state.slots
        if held is None or resource not in {"kv-block", "slot"}:
            return None
        counted = Counter(held.values())
        ran = {name: place for place, name in enumerate(self.state.running or ())}
        ordered = sorted(counted, key=lambda name: ran.get(name, len(ran)))
        return Counter({name: counted[name] for name in ordered})

    @cached_property
    def step_before(self) -> Position | None:
        """The position of the step before that of the position; None where there is none."""
        moments = self.session.moments
        place = None if self.at.step is None else moments.place_of(self.at.step)
        return moments.at_step(place - 1) if place else None

    @cached_property
    def num_missing(self) -> int:
        """How many rows of state are missing from the first one until here."""
        return self.told.num_missing(BEFORE_ALL, self.seq)

    def step_row(self, step: int | None) -> Row:
        """The row of a step; empty where there is none."""
        return self.told.step_row(step)

    @cached_property
    def num_blocks(self) -> int | None:
        """KV blocks of the pool, as the last step says it."""
        total = self.step_row(self.at.step).get("kv_blocks_total")
        return None if total is None else int(total)

    @cached_property
    def most_running(self) -> int | None:
        """How many requests may run at once, where the configuration says it."""
        engine = self.session.trace.manifest.config.get("engine")
        most = engine.get("max_num_seqs") if isinstance(engine, dict) else None
        return most if isinstance(most, int) else None

    def life(self, request: str) -> list[Row]:
        """What happened to a request by now."""
        return [row for row in self.told.lifecycle.of(request) if row["seq"] <= self.seq]

    def moved(self, request: str) -> Row | None:
        """The last time that a request entered the queue, left it, or ended."""
        return next((row for row in reversed(self.life(request)) if row["event"] in MOVES), None)

    def later(self, request: str, events: tuple[str, ...]) -> Row | None:
        """The next of some events of a request after now, as the trace tells it."""
        rows = self.told.lifecycle.of(request)
        return next((r for r in rows if r["seq"] > self.seq and r["event"] in events), None)

    def last_batch(self, request: str) -> Row | None:
        """The last row of a batch that a request is in by now, by the number of its step."""
        if self.at.step is None:
            return None
        known = pl.col("step").is_not_null() & (pl.col("step") <= self.at.step)
        own = (pl.col("request") == request) & (pl.col("rank") == self.told.rank)
        rows = self.session.trace.batch_rows.filter(own, known).sort("step").tail(1).collect()
        return next(rows.select("step", "ts_ns").iter_rows(named=True), None)

    def priority(self, request: str) -> int | None:
        """The priority of a request, the lower first; None without such an order, or unknown."""
        return self.told.priorities.get(request)

    def has_ended(self, request: str) -> bool:
        """Whether a request is known to have ended by now."""
        moved = self.moved(request)
        return moved is not None and moved["event"] in ENDS

    def decided(self, request: str) -> list[Row]:
        """What was decided about a request by now, the last first."""
        rows = self.told.about_requests.of(request)
        return [row for row in reversed(rows) if row["seq"] <= self.seq]

    def clock(self, ts_ns: int) -> str:
        """A time of the trace, since it begins."""
        return moment(ts_ns - self.told.first_ns, 1_000)

    def place_of(self, row: Row) -> Position:
        """The position at which a row is told."""
        if row.get("seq") is not None:
            return self.session.moments.at_seq(row["seq"])
        return self.session.moments.position(row["ts_ns"])


def proof(table: str, row: Row) -> Proof:
    """A row as what proves a link."""
    return Proof(table, row.get("step"), row["ts_ns"], row.get("seq"))
