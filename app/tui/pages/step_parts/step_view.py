"""Where the step page stands, and what it shows of that, looked up in a thread."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

from stepscope.app.debug import LeftOut, Moments, Position, Session, StepDetail
from stepscope.app.debug.commands.where_it_is import change_blocks
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.shown.why_blocks import known_why
from stepscope.app.debug.stops.stop import Hit, Stop
from stepscope.app.debug.stops.tables import Tables
from stepscope.app.debug.why import Chain
from stepscope.app.present.blocks import Paragraph
from stepscope.app.timeline import Composition
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace


class Stand:
    """A debugger that begins with a session of its trace, and what a thread may move of it.

    `first` is the rank whose steps the whole application walks.
    """

    def __init__(self, trace: Trace, session: Session, composition: Composition) -> None:
        self.first = session
        self.debugger = Debugger(trace, session=session)
        self._num_ranks = composition.num_ranks
        self._own: dict[int, Session] = {}

    @property
    def session(self) -> Session:
        """The session of the rank that is stood at."""
        return self.debugger.session

    @property
    def is_elsewhere(self) -> bool:
        """Whether it stands at another rank than the one whose steps are walked."""
        return self.session is not self.first

    @property
    def whose(self) -> str:
        """Whose steps they are, where several ranks have some: ` of rank 1`."""
        return f" of rank {self.debugger.rank}" if self.is_elsewhere or self._num_ranks > 1 else ""

    def follow(self, ts_ns: int) -> None:
        """Stand at a time, in whatever rank it is; nothing moves where it is that time."""
        if self.session.position.ts_ns != ts_ns:
            self.session.goto(ts_ns=ts_ns)

    def at_step(self, step: int, rank: int | None = None) -> Position:
        """Stand at a step of a rank, by default of that which is walked.

        Raises ConfigError where it has none such.
        """
        self.debugger.switch(self.first.rank if rank is None else rank)
        self.session.goto(step=step)
        return self.session.position

    @property
    def next_rank(self) -> int | None:
        """The next rank, around the end; None without another."""
        ranks = self.debugger.ranks
        after = ranks[(ranks.index(self.debugger.rank) + 1) % len(ranks)] if ranks else None
        return None if len(ranks) < 2 else after

    def go_to_hit(self, stop: Stop, hit: Hit) -> None:
        """Stand where a hit is, in its rank."""
        self.debugger.go_to_hit(stop, hit)

    def lend(self) -> Position:
        """The position, of whose rank a thread then has a session that nobody else moves."""
        session = self.session
        if session.rank not in self._own:
            # What both read is never written to.
            self._own[session.rank] = copy.copy(session)
        return session.position

    def own_of(self, position: Position) -> Session:
        """The session that was lent for a position."""
        return self._own[position.rank]

    def own_of_rank(self, rank: int) -> Session:
        """A session of any rank for a thread, which nobody moves: positions are handed to it."""
        return self._own.get(rank) or self.debugger.session_of(rank)


@dataclass(frozen=True, slots=True)
class StepView:
    """A step's detail, and of one request why it waits and what was decided about it.

    `changed` is the change behind which the position is, where that is not where it was formed.
    """

    position: Position
    moments: Moments
    detail: StepDetail
    request: str | None = None
    why: tuple[LeftOut, ...] = ()
    chain: Chain | None = None
    changed: tuple[Paragraph, ...] = ()

    @property
    def is_at_its_batch(self) -> bool:
        """Whether the position is the moment at which the step's own numbers were taken."""
        rows, step = self.detail.rows, self.detail.step
        of_rows = rows[0]["ts_ns"] if rows else None
        told = (step.get("formed_ns"), of_rows, step.get("ts_ns"))
        formed = next((each for each in told if each is not None), None)
        return bool(formed == self.position.ts_ns)

    @property
    def requests(self) -> list[str]:
        """Everyone who can be asked about: the batch, then who was left out."""
        seated = [str(row["request"]) for row in self.detail.rows]
        return list(dict.fromkeys([*seated, *(left.request for left in self.detail.left_out)]))


def look_at_step(
    session: Session,
    position: Position,
    request: str | None,
    tables: Tables | None = None,
    session_of: Callable[[int], Session] | None = None,
) -> StepView:
    """Move a session, which must be the caller's own, and read what is there.

    `tables` of its trace tell of the change at the position, `session_of` gives the session of
    another rank, which may have the request.
    """
    session.position = position
    chain = None if request is None else known_why(session, request, session_of)
    decided = _why(session, request)
    changed = _changed(session.moments, position, tables) if tables else ()
    return StepView(position, session.moments, session.detail(), request, decided, chain, changed)


def _changed(moments: Moments, position: Position, tables: Tables) -> tuple[Paragraph, ...]:
    seq = position.seq
    if seq is None or moments.at_seq(seq) != position or seq in moments.step_seq:
        return ()
    return change_blocks(tables, position.rank, seq)


def _why(session: Session, request: str | None) -> tuple[LeftOut, ...]:
    if request is None:
        return ()
    try:
        return tuple(session.why(request))
    except ConfigError:  # the request that was followed is not in this trace's lifecycle
        return ()
