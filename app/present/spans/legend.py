"""The legend: the states that a timeline shows, each with its colour and its second cue."""

from __future__ import annotations

from stepscope.app.palette import IN_LEGEND, STATES, State
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.section_states import word_of


def names_of(timeline: Timeline) -> list[tuple[State, str, str]]:
    """The names that took most of a profile: the state, the name, and its share in words."""
    return [(STATES[each.state], each.name, f"{each.share:.0%}") for each in timeline.top_names]


def states_of(timeline: Timeline) -> list[tuple[State, str]]:
    """The states that spans come in, in the order of the palette, and what each is called; shades
    of tracks have no name.
    """
    return [(STATES[kind], word_of(kind, timeline)) for kind in IN_LEGEND if kind in timeline.kinds]
