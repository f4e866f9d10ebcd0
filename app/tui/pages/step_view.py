"""What the step page shows of a position, looked up in a thread."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.app.debug import LeftOut, Moments, Position, Session, StepDetail
from stepscope.app.debug.commands.where_it_is import change_blocks
from stepscope.app.debug.shown.why_blocks import known_why
from stepscope.app.debug.stops.tables import Tables
from stepscope.app.debug.why import Chain
from stepscope.app.present.blocks import Paragraph
from stepscope.ingest.errors import ConfigError


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
    session: Session, position: Position, request: str | None, tables: Tables | None = None
) -> StepView:
    """Move a session, which must be the caller's own, and read what is there.

    `tables` of its trace tell of the change at the position.
    """
    session.position = position
    chain = None if request is None else known_why(session, request)
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
