"""What the step page shows of a position, looked up in a thread."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.app.debug import LeftOut, Moments, Position, Session, StepDetail
from stepscope.ingest.errors import ConfigError


@dataclass(frozen=True, slots=True)
class StepView:
    """A step's detail, and the reasons about one request."""

    position: Position
    moments: Moments
    detail: StepDetail
    request: str | None = None
    why: tuple[LeftOut, ...] = ()

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


def look_at_step(session: Session, position: Position, request: str | None) -> StepView:
    """Move a session, which must be the caller's own, and read what is there."""
    session.position = position
    return StepView(position, session.moments, session.detail(), request, _why(session, request))


def _why(session: Session, request: str | None) -> tuple[LeftOut, ...]:
    if request is None:
        return ()
    try:
        return tuple(session.why(request))
    except ConfigError:  # the request that was followed is not in this trace's lifecycle
        return ()
