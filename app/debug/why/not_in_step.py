"""Why somebody was not in the batch of a step."""

from __future__ import annotations

from stepscope.analyzers.views.partial import partial
from stepscope.app.debug.session import Session
from stepscope.app.debug.why.at_position import View, proof
from stepscope.app.debug.why.chain import Chain, Link, Root
from stepscope.app.debug.why.subjects import subject_of
from stepscope.app.debug.why.walk import chain_from
from stepscope.ingest.errors import ConfigError


def why_not(session: Session, request: str, step: int) -> Chain:
    """Why a request was not in the batch of a step; one that was in it is told to have been.

    Raises ConfigError for a step or a request that the trace does not have.
    """
    place = session.moments.place_of(step)
    if place is None:
        steps = session.moments.steps
        todo = f"it has steps {min(steps)} to {max(steps)}" if steps else "it has no steps"
        raise ConfigError(f"the trace has no step {step}", todo=todo)
    view = View(session, session.moments.at_step(place))
    who = subject_of(view.told, request)
    if who.name not in view.batch:
        return chain_from(view, who)
    row = view.step_row(step)
    shown = proof("steps", row) if row else None
    link = Link(who, f"{who} is in the batch of step {step}", view.at, shown)
    root = Root("not waiting", who, f"it is in the batch of step {step}", "", shown)
    return Chain(who, view.at, (link,), root, partial=partial(view.session.trace))
