"""What a timeline draws, lane by lane, as tests read it."""

from __future__ import annotations

from stepscope.app.palette import STATES
from stepscope.app.timeline import SpanView, Timeline
from stepscope.ingest.trace import Trace
from tests.traces import trace_of

Drawn = tuple[int, int, str, str]


def drawn(timeline: Timeline, section: str) -> dict[str, list[Drawn]]:
    """Per lane of a section: start, end, state and label of each span."""
    return {
        f"{lane.group} {lane.label}".strip() + "'" * lane.depth: [
            (span.start_ns, span.end_ns, STATES[span.state].name, span.label)
            for span in spans_of(timeline, lane.id)
        ]
        for lane in timeline.lanes
        if lane.section == section
    }


def spans_of(timeline: Timeline, lane: int) -> list[SpanView]:
    return timeline.spans(lane, timeline.bounds[0], timeline.bounds[1], 1000)


def of_many_steps() -> Trace:
    """Three thousand decodes, of which one step is mixed, and a request preempted for one step."""
    steps = [{"step": n, "ts_ns": 10 * n, "dur_ns": 10, "kind": "decode"} for n in range(3000)]
    steps[1234] |= {"kind": "mixed", "num_prefill_tokens": 2047, "num_decode_tokens": 1}
    life = [
        ("arrive", 0),
        ("admit", 0),
        ("preempt", 20_000),
        ("resume", 20_010),
        ("finish", 30_000),
    ]
    rows = [
        {"step": n, "ts_ns": 10 * n, "request": "a", "phase": "decode", "num_tokens": 1}
        for n in range(3000)
        if n != 2000
    ]
    lifecycle = [{"request": "a", "event": event, "ts_ns": ts_ns} for event, ts_ns in life]
    return trace_of(steps=steps, batch_rows=rows, lifecycle=lifecycle)
