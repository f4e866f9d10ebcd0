"""A gap between two steps of an engine: how long it was, who waited and who had been admitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepscope.analyzers.findings.wording import times
from stepscope.app.debug.engine_state import State
from stepscope.app.present.blocks import AtSpan, Block, Fact, Paragraph, Table, Title, Tone
from stepscope.app.present.inspected.span_wait import session_of
from stepscope.app.present.where import lane_name, when
from stepscope.app.timeline import SpanView, Timeline
from stepscope.app.units import duration
from stepscope.ingest.trace import Trace

MOST_LISTED = 8


def gap_blocks(lane: int, ts_ns: int, timeline: Timeline, trace: Trace) -> Iterator[Block]:
    """What an engine did at a time at which no step ran; nothing of any other lane."""
    own = timeline.lanes[lane]
    if own.section != "steps" or own.depth or not trace.manifest.clock.has_times:
        return
    if timeline.at(lane, ts_ns) is not None:
        return
    before, after = timeline.previous_span(lane, ts_ns), timeline.next_span(lane, ts_ns)
    began_ns = timeline.bounds[0] if before is None else before.end_ns
    ends_ns = timeline.bounds[1] if after is None else after.start_ns
    yield Title("no step")
    yield Paragraph(f"{lane_name(own)} at {when(ts_ns, timeline, 1)}", Tone.MUTED)
    session = session_of(trace, own.rank or 0)
    state = None if session is None else session.state_at(session.moments.position(ts_ns))
    yield Paragraph(f"No step ran for {duration(ends_ns - began_ns)}{_who(state)}.")
    yield Fact("starts", (when(began_ns, timeline, 1),))
    yield Fact("ends", (when(ends_ns, timeline, 1),))
    for name, span in (("step before", before), ("step after", after)):
        yield Fact(name, (_called(span),), to=None if span is None else _at(span, timeline))
    if state is not None:
        yield from _listed("waiting", state.waiting, own.rank or 0, ts_ns, timeline)
        yield from _listed("admitted, and in no batch", state.running, own.rank or 0, ts_ns,
                           timeline)  # fmt: skip


def _who(state: State | None) -> str:
    """Who was there, as the end of a sentence; who waited while nobody ran comes first."""
    if state is None or state.waiting is None or state.running is None:
        return "; which requests were there is not recorded"
    waiting, running = len(state.waiting), len(state.running)
    if not waiting and not running:
        return "; no request was there at this time"
    if waiting and not running:
        return f", while {times(waiting, 'request')} waited and none was admitted"
    return f", while {times(waiting, 'request')} waited and {running:,} had been admitted"


def _called(span: SpanView | None) -> str:
    return "none" if span is None else f"{span.label or 'a step'}, {duration(_ns(span))}"


def _ns(span: SpanView) -> int:
    return span.end_ns - span.start_ns


def _at(span: SpanView, timeline: Timeline) -> AtSpan:
    return AtSpan(span.lane, span.start_ns - timeline.bounds[0])


def _listed(
    title: str, names: Sequence[str] | None, rank: int, ts_ns: int, timeline: Timeline
) -> Iterator[Block]:
    if not names:
        return
    shown = names[:MOST_LISTED]
    lanes = [timeline.lane_of_request(rank, name) for name in shown]
    since = ts_ns - timeline.bounds[0]
    leads = tuple(None if lane is None else AtSpan(lane, since) for lane in lanes)
    rows = tuple((name,) for name in shown)
    yield Table(("request",), rows, title, num_more=len(names) - len(shown), leads=leads)
