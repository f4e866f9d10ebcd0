"""How a recorded decision becomes a link."""

from __future__ import annotations

from stepscope.app.debug.why.at_position import View, proof
from stepscope.app.debug.why.chain import Link, Root, Subject
from stepscope.app.debug.why.rows_by_name import Row

Hop = tuple[Link, Root | Subject]
"""A link, and where it leads: to whom it waits for, or to the root."""


def link_of(
    view: View,
    who: Subject,
    decided: Row,
    holder: str | None = None,
    num_holders: int | None = None,
) -> Link:
    """A decision as a link; `holder` is who holds at the position, and not whom the row names."""
    named = decided["holder"]
    return Link(
        who,
        f"{who} is {decided['verdict']}: {decided['reason'] or 'no reason is given'}",
        view.place_of(decided),
        proof("decisions", decided),
        decided["resource"],
        decided["needed"],
        decided["available"],
        None if holder is None else Subject("request", holder),
        num_holders,
        named if holder is not None and named not in {holder, who.name} else None,
        decided["site"],
    )


def unknown(who: Subject, says: str) -> Root:
    """The end of a chain where the trace does not tell how it goes on."""
    return Root("not recorded", who, says, "a trace with these rows would say")
