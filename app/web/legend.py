"""The legend: the states that a timeline shows, each with its colour and its second cue."""

from __future__ import annotations

from stepscope.app.palette import COUNTER, STATES, State
from stepscope.app.timeline import Timeline


def states_of(timeline: Timeline) -> list[State]:
    """The states that spans come in, in the order of the palette; shades of tracks have no name."""
    return [STATES[kind] for kind in sorted(timeline.kinds) if 0 < kind < COUNTER]
