"""A gap between two steps of an engine: how long it was, who waited and who had been admitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepscope.analyzers.findings.wording import times
from stepscope.app.debug.engine_state import State
from stepscope.app.present.blocks import AtSpan, Block, Fact, Paragraph, Table, Title, Tone
from stepscope.app.present.inspected.span_wait import session_of, wait_of
from stepscope.app.present.where import lane_name, when
from stepscope.app.timeline import SpanView, Timeline
from stepscope.app.units import duration
from stepscope.ingest.trace import Trace

MOST_LISTED = 8
NO_REASON = ("idle", "unknown", "step", "waiting", "decode", "prefill", "recompute")
"""Causes of a request's time that do not say what it lacked."""


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
        moment = _Moment(trace, timeline, own.rank or 0, ts_ns)
        yield from moment.listed("waiting", state.waiting)
        yield from moment.listed("admitted, and in no batch", state.running)


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


@dataclass(frozen=True, slots=True)
class _Moment:
    """A time at which no step ran on a rank."""

    trace: Trace
    timeline: Timeline
    rank: int
    ts_ns: int

    def listed(self, title: str, names: Sequence[str] | None) -> Iterator[Block]:
        """Requests, each with a lead to its lane and what it lacked by the last decision."""
        if not names:
            return
        shown = names[:MOST_LISTED]
        lanes = [self.timeline.lane_of_request(self.rank, name) for name in shown]
        since = self.ts_ns - self.timeline.bounds[0]
        leads = tuple(None if lane is None else AtSpan(lane, since) for lane in lanes)
        why = [self._why(name) for name in shown]
        columns = ("request", "not chosen") if any(why) else ("request",)
        rows = tuple((name, text)[: len(columns)] for name, text in zip(shown, why, strict=True))
        yield Table(columns, rows, title, num_more=len(names) - len(shown), leads=leads)

    def _why(self, request: str) -> str:
        wait = wait_of(self.trace, self.rank, request, self.ts_ns, self.ts_ns + 1)
        if not wait.reasons or wait.reasons[0].cause in NO_REASON:
            return ""
        return wait.reasons[0].meaning
