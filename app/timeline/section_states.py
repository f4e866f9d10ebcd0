"""What the spans of a section show: its states, by the names that they have there, for legends."""

from __future__ import annotations

from collections.abc import Collection

from stepscope.app.palette import (
    ABSENT,
    AIC,
    AIV,
    BLOCKED,
    CACHED,
    COMMUNICATION,
    CORES,
    DECODE,
    FRONT_END,
    HELD,
    IDLE,
    MISMATCHED,
    MIX,
    MIXED,
    OVERWRITTEN,
    OWNERS,
    PREEMPTED,
    PREFILL,
    REASONS,
    RECOMPUTE,
    STATES,
    UNKNOWN,
    WAITING,
    State,
)
from stepscope.app.timeline.area.span_names import OF_REQUESTS
from stepscope.app.timeline.lanes.buffers import BUFFERS, OF_BUFFERS
from stepscope.app.timeline.lanes.collective_calls import CALLS
from stepscope.app.timeline.lanes.kv_blocks import KV_BLOCKS
from stepscope.app.timeline.lanes.slots import SLOTS
from stepscope.app.timeline.lanes.tracks import SAYS
from stepscope.app.timeline.lanes.waiting_queue import WAITING_QUEUE
from stepscope.app.timeline.model import Timeline
from stepscope.app.timeline.picture import SpanView

ORDER = (
    FRONT_END, *REASONS, WAITING, PREFILL, DECODE, MIXED, PREEMPTED, RECOMPUTE, AIC, AIV, MIX,
    HELD, IDLE, OVERWRITTEN, UNKNOWN, COMMUNICATION, MISMATCHED, BLOCKED, ABSENT, OWNERS.start,
    CACHED,
)  # fmt: skip
"""As requests go through them; the shades of tracks stand for categories and have no names."""
OF_SLOTS = {IDLE: "in no batch", HELD: "old tokens remain"}
OWN = {"requests": OF_REQUESTS, SLOTS: OF_SLOTS, BUFFERS: OF_BUFFERS}
NAMES = {
    **OWN,
    "core groups": {state: f"{name}: {CORES[name]}" for state, name in
                    ((AIC, "AIC"), (AIV, "AIV"), (MIX, "MIX"))},
    KV_BLOCKS: {OWNERS.start: "owned, a colour for each request", CACHED: "free, cached"},
    CALLS: {COMMUNICATION: "returned", MISMATCHED: "not what others came with",
            BLOCKED: "never returned", ABSENT: "never came"},
}  # fmt: skip
"""Where a state is not called as in the palette; a span of it has the same words."""


def states_in(
    section: str, timeline: Timeline, hidden: Collection[int] = ()
) -> list[tuple[State, str]]:
    """The states that the spans of a section show in this trace, each with its name there."""
    named = NAMES.get(section, {})
    is_shaded = section in SAYS or section == WAITING_QUEUE
    kinds = frozenset[int]() if is_shaded else timeline.kinds_of(section)
    if any(kind in OWNERS for kind in kinds):
        kinds |= {OWNERS.start}
    return [
        (STATES[kind], named.get(kind, "unknown" if kind == UNKNOWN else STATES[kind].name))
        for kind in ORDER
        if kind in kinds and kind not in hidden
    ]


def about_steps(timeline: Timeline) -> str:
    """What the spans of steps are: batches where the trace says what they computed."""
    kinds = timeline.kinds_of("steps")
    if MIXED in kinds:
        return "batches, mixed ones split by tokens"
    return "batches" if kinds & {PREFILL, DECODE} else "a span for each step"


def word_of(kind: int, timeline: Timeline) -> str:
    """What a legend of all sections calls a state: as the only section does that has it, if one
    alone has, else as the palette does.
    """
    own = {
        OWN.get(section, {}).get(kind)
        for section in {lane.section for lane in timeline.lanes}
        if kind in timeline.kinds_of(section)
    }
    only = own.pop() if len(own) == 1 else None
    return only or timeline.called(kind)


def state_of(span: SpanView, timeline: Timeline) -> str:
    """What a span is in, in the words of its section."""
    section = timeline.lanes[span.lane].section
    if section == WAITING_QUEUE:
        return STATES[WAITING].name
    if span.state in OWNERS:
        return "owned"
    own = OWN.get(section, {}).get(span.state)
    if own is None and span.state == UNKNOWN and section not in SAYS:
        return "unknown"
    return own or timeline.called(span.state)
