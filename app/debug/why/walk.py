"""Follows a chain from who waits to its root; one that comes back to somebody is a wait cycle."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.analyzers.views.partial import partial
from stepscope.app.debug.moments import Position
from stepscope.app.debug.session import Session
from stepscope.app.debug.why.at_position import View
from stepscope.app.debug.why.chain import Chain, Kind, Link, Root, Subject
from stepscope.app.debug.why.held_tasks import of_core, of_task
from stepscope.app.debug.why.links import Hop
from stepscope.app.debug.why.stuck_ranks import of_rank
from stepscope.app.debug.why.subjects import subject_of
from stepscope.app.debug.why.waiting_requests import of_request

HOPS: dict[Kind, Callable[[View, Subject], Hop]] = {
    "request": of_request,
    "task": of_task,
    "core": of_core,
    "rank": of_rank,
}


def why(session: Session, subject: str, at: Position | None = None) -> Chain:
    """Why somebody waits at a position, by default where the session stands, to the root.

    `subject` is a request, or a task, core or rank as in `task 17`. Raises ConfigError, naming near
    matches, for whom the trace does not have.
    """
    view = View(session, session.position if at is None else at)
    return chain_from(view, subject_of(view.told, subject))


def chain_from(view: View, who: Subject) -> Chain:
    """The chain from somebody to the root."""
    lacking = partial(view.session.trace)
    links: list[Link] = []
    seen: dict[Subject, int] = {}
    here: Root | Subject = who
    while isinstance(here, Subject):
        if here in seen:
            return Chain(who, view.at, tuple(links), _cycle(links[seen[here] :]), partial=lacking)
        seen[here] = len(links)
        link, here = _hop(view, here)
        links.append(link)
    return Chain(who, view.at, tuple(links), here, partial=lacking)


def _hop(view: View, who: Subject) -> Hop:
    return HOPS[who.kind](view, who)


def _cycle(links: list[Link]) -> Root:
    """Who waits for whom, in a ring."""
    names = [str(link.subject) for link in links]
    waits = ", ".join(
        f"{name} waits for {other}"
        for name, other in zip(names, [*names[1:], names[0]], strict=True)
    )
    change = "one of them gives way" if len(names) > 1 else "it is let go on"
    return Root("wait cycle", links[0].subject, waits, change, links[-1].proof)
