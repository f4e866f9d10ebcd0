"""Breakpoints, watchpoints and trace points: a line in KINDS makes a new way to say where."""

from __future__ import annotations

from stepscope.app.debug.stops.condition_stops import ConditionStops
from stepscope.app.debug.stops.event_stops import EventStops
from stepscope.app.debug.stops.finding_stops import FindingStops
from stepscope.app.debug.stops.stop import Kind, Selection
from stepscope.app.debug.stops.tables import Tables
from stepscope.app.debug.stops.watch_stops import WatchStops
from stepscope.ingest.errors import ConfigError

KINDS: tuple[Kind, ...] = (ConditionStops(), EventStops(), FindingStops(), WatchStops())
"""In the order in which words are tried, and help names them."""


def selected(wanted: str, tables: Tables) -> tuple[Selection, ...]:
    """What words select, whichever kind they are of; raises ConfigError where of none."""
    for kind in KINDS:
        if (selections := kind.read(wanted.strip(), tables)) is not None:
            return selections
    known = ", ".join(form for kind in KINDS for form, _ in kind.usage)
    raise ConfigError(f"{wanted.strip() or 'nothing'}: no such stop", todo=f"it can be {known}")
