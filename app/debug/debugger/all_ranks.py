"""A debugger over all ranks of a trace: one position, stops, and moves between them.

The position is that of one rank, the *current* one. The others follow by time: whoever goes over
to another rank stands there at the same moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl

from stepscope.app.debug.debugger.targets import rank_of, target_of
from stepscope.app.debug.formed import BEFORE_ALL
from stepscope.app.debug.moments import Moments, Position
from stepscope.app.debug.session import Session
from stepscope.app.debug.stops import selected
from stepscope.app.debug.stops.hits import Here
from stepscope.app.debug.stops.stop import Does, Hit, Stop, found
from stepscope.app.debug.stops.tables import OF_STATE, Tables
from stepscope.app.debug.stops.watch_stops import names_of_a_rank
from stepscope.app.kept.flags import Flag, Flags
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace

Grain = Literal["step", "change"]


class Debugger:
    """Stands at a position of a rank, moves, and stops where it was told to."""

    def __init__(
        self, trace: Trace, rank: int | None = None, session: Session | None = None
    ) -> None:
        """Stand at the first step of a rank, by default of the lowest that has one.

        Where somebody has a session of the trace, it is that which moves.
        """
        self.trace = trace
        self.tables = Tables(trace)
        self.flags = Flags(trace.path)
        self.stops: dict[int, Stop] = {}
        self.last_hit: Hit | None = None
        self._num_stops = 0
        first = session or Session(trace, rank)
        self._sessions = {first.rank: first}
        self.rank = first.rank
        if rank is not None and rank not in self.ranks:
            raise ConfigError(f"the trace has no rank {rank}", todo=self._ranks_known())
        self.tables.share(first.rank, first.moments)

    # ── where it is ──────────────────────────────────────────────────────────────────────────

    @property
    def session(self) -> Session:
        """The session of the current rank."""
        return self._sessions[self.rank]

    def has_opened(self, rank: int) -> bool:
        """Whether a rank has a session already: to make one may take seconds."""
        return rank in self._sessions

    def session_of(self, rank: int) -> Session:
        """The session of a rank, which is made when it is first asked for."""
        if rank not in self._sessions:
            self._sessions[rank] = Session(self.trace, rank)
            self.tables.share(rank, self._sessions[rank].moments)
        return self._sessions[rank]

    @property
    def position(self) -> Position:
        """Where the current rank is."""
        return self.session.position

    @property
    def here(self) -> Here:
        """The position in the order of the run."""
        return self.here_of(self.rank, self.position)

    def here_of(self, rank: int, position: Position) -> Here:
        """Any position in the order of the run."""
        seq = np.array([position.seq or BEFORE_ALL])
        reached, _ = self.tables.places(rank).of_changes(seq)
        return Here(max(position.ts_ns, int(reached[0])), rank, int(seq[0]))

    @property
    def moments(self) -> Moments:
        """Where the steps of the current rank are."""
        return self.session.moments

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """All ranks that wrote a row, in order."""
        every = [self.trace.table(table.name).select("rank").unique() for table in TABLES]
        ranks = {rank for frame in pl.collect_all(every) for rank in frame["rank"].to_list()}
        return tuple(sorted(rank for rank in ranks if rank is not None))

    @property
    def bounds_ns(self) -> tuple[int, int]:
        """When the trace begins and ends."""
        return self.session.bounds_ns

    def others(self) -> Iterator[tuple[int, Position]]:
        """Every other rank, and where it is at this moment."""
        for rank in self.ranks:
            if rank != self.rank:
                yield rank, self.tables.moments(rank).position(self.position.ts_ns)

    # ── moving ───────────────────────────────────────────────────────────────────────────────

    def forward(self, grain: Grain = "step", times: int = 1) -> bool:
        """Go on by steps or changes; False where the end was in the way."""
        return all(self.session.next(self._grain(grain)) for _ in range(times))

    def back(self, grain: Grain = "step", times: int = 1) -> bool:
        """Go back by steps or changes; False where the start was in the way."""
        return all(self.session.back(self._grain(grain)) for _ in range(times))

    def goto(self, text: str) -> None:
        """Go to a place, as `targets` reads it; raises ConfigError where there is none such.

        `of rank 1` behind it says in which rank, by default in the current one.
        """
        place, rank = rank_of(text)
        if rank is not None:
            self._goto_of(rank, place)
            return
        target = target_of(text)
        if target.flag is not None:
            self.go_to_flag(self.flags.get(target.flag))
        elif target.step is not None:
            self.session.goto(step=target.step)
        elif target.seq is not None:
            self.session.goto(seq=target.seq)
        else:
            first_ns, last_ns = self.bounds_ns
            after_ns = target.after_ns
            if after_ns is None:
                after_ns = round((last_ns - first_ns) * (target.share or 0))
            self.session.goto(ts_ns=first_ns + after_ns)

    def _goto_of(self, rank: int, place: str) -> None:
        before = self.rank
        self.switch(rank)
        try:
            self.goto(place)
        except ConfigError:
            self.rank = before
            raise

    def go(self, position: Position) -> None:
        """Go to a position, in its rank."""
        self.switch(position.rank)
        self.session.position = position

    def go_to_flag(self, flag: Flag) -> None:
        """Go to where a flag is: to its place in its rank, where it has one, else to its time."""
        if flag.rank is None:
            self.session.goto(ts_ns=flag.ts_ns)
        else:
            self.go(Position(flag.rank, flag.step, flag.seq, flag.ts_ns))

    def flag(self, name: str, note: str = "") -> str:
        """Give the position a name and a note; gives the name. Raises ConfigError, WriteError."""
        return self.flags.put(name, flag_of(self.position, note))

    def position_of(self, text: str) -> Position:
        """The position that is written so, without going there."""
        rank, before = self.rank, {each: own.position for each, own in self._sessions.items()}
        try:
            self.goto(text)
            return self.position
        finally:
            self.rank = rank
            for each, position in before.items():
                self._sessions[each].position = position

    def switch(self, rank: int) -> None:
        """Make another rank the current one, at the same moment; ConfigError where it is none."""
        if rank not in self._sessions and rank not in self.ranks:
            raise ConfigError(f"the trace has no rank {rank}", todo=self._ranks_known())
        now_ns = self.position.ts_ns
        own = self.session_of(rank)
        if rank != self.rank:
            self.rank = rank
            own.position = own.moments.position(now_ns)

    # ── stopping ─────────────────────────────────────────────────────────────────────────────

    def add(self, does: Does, wanted: str, columns: tuple[str, ...] | None = None) -> Stop:
        """Make a stop; raises ConfigError where words say none, or nothing is recorded of it."""
        stop = self.find(wanted, does, columns)
        self._num_stops = stop.number
        self.stops[stop.number] = stop
        return stop

    def find(
        self, wanted: str, does: Does = "break", columns: tuple[str, ...] | None = None
    ) -> Stop:
        """Find all hits of a stop that is not kept."""
        wanted = self._of_own_rank(wanted.strip())
        hits, num_untold = found(selected(wanted, self.tables), self.tables)
        for source in hits if columns else ():
            self.tables.rows(source, (), columns)  # which says what is wrong with a column
        return Stop(self._num_stops + 1, does, wanted, hits, columns, num_untold)

    def resume(self) -> Hit | None:
        """Go on to the next hit of any stop, else to the end; gives what was hit."""
        hits = (stop.after(self.here) for stop in self._stopping())
        return self._stand_at(min(filter(None, hits), default=None), share=1.0)

    def reverse(self) -> Hit | None:
        """Go back to the last hit of any stop before, else to the start; gives what was hit."""
        hits = (stop.before(self.here) for stop in self._stopping())
        return self._stand_at(max(filter(None, hits), default=None), share=0.0)

    def traced(self, first: Here, last: Here) -> list[Hit]:
        """The hits of trace points between two places, in order."""
        traces = (stop for stop in self.stops.values() if stop.does == "trace")
        return sorted(hit for stop in traces for hit in stop.between(first, last))

    def go_to_hit(self, stop: Stop, hit: Hit) -> None:
        """Stand where a hit is, in its rank."""
        self.switch(hit.here.rank)
        step = int(stop.sources[hit.source].step[hit.place])
        if step >= 0:
            self.session.goto(step=step)
        elif stop.sources[hit.source].table in OF_STATE:
            self.session.goto(seq=hit.here.order)
        else:
            self.session.position = self.moments.position(hit.here.ts_ns)
        self.last_hit = hit

    def _stand_at(self, hit: Hit | None, share: float) -> Hit | None:
        if hit is None:
            self.goto("end" if share else "start")
        else:
            self.go_to_hit(self.stops[hit.stop], hit)
        return hit

    def _stopping(self) -> list[Stop]:
        stops = [stop for stop in self.stops.values() if stop.does != "trace"]
        if not stops:
            raise ConfigError("there is nothing to stop at", todo="make one with break or watch")
        return stops

    def _of_own_rank(self, wanted: str) -> str:
        """Whose block 5 it is, of several ranks that have one each: of the current one."""
        is_of_any = len(self.ranks) > 1 and names_of_a_rank(wanted)
        return f"{wanted} of rank {self.rank}" if is_of_any else wanted

    def _grain(self, grain: Grain) -> str:
        """A step, or the smallest that is told: a change of state, else whatever happened."""
        if grain == "step":
            return grain
        return "seq" if self.moments.changes.ends() else "event"

    def _ranks_known(self) -> str:
        return f"it has {', '.join(map(str, self.ranks))}" if self.ranks else "it has no rows"


def flag_of(position: Position, note: str = "") -> Flag:
    """The flag of a position, to which it leads in its rank."""
    rank, step, seq, ts_ns = position
    return Flag(ts_ns, note, rank=rank, step=step, seq=seq)
