"""Stop at what happens to a request, or is decided about it: `preempt req-17`, `deferred`."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from stepscope.app.debug.stops.stop import Named, Selection
from stepscope.app.debug.stops.tables import Tables
from stepscope.ingest.schema import ALLOCATION_OPS, LIFECYCLE_EVENTS, VERDICTS

WHERE = (
    ("lifecycle", "event", "request", LIFECYCLE_EVENTS),
    ("decisions", "verdict", "subject", VERDICTS),
    ("allocations", "op", "owner", ALLOCATION_OPS),
)
"""Tables that tell of events: the columns of what happened and to whom, and what may happen."""


class EventStops:
    """An event, a verdict or an operation on a block, of one request or of any."""

    usage = (
        ("EVENT [REQUEST]", "an event of `lifecycle`: preempt, admit, finish ..."),
        ("VERDICT [SUBJECT]", "a verdict of `decisions`: deferred, passed-over ..."),
        ("OP [REQUEST]", "what was done in `allocations`: claim, release, evict ..."),
    )

    def read(self, wanted: str, tables: Tables) -> tuple[Selection, ...] | None:
        """Read the event, and whose it has to be."""
        event, _, whose = wanted.partition(" ")
        selections = [
            _selected(table, pl.col(what) == event, who, whose.strip())
            for table, what, who, values in WHERE
            if event in values
        ]
        return tuple(selections) or None

    def words(self, tables: Tables) -> Iterable[str]:
        """Events of the tables that the trace has."""
        return (word for table, _, _, words in WHERE if tables.is_recorded(table) for word in words)


def _selected(table: str, is_event: pl.Expr, who: str, whose: str) -> Selection:
    if not whose:
        return Selection(table, is_event)
    return Selection(table, is_event & (pl.col(who) == whose), Named(who, whose))
