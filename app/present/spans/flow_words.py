"""What is said of arrows: what led to a span, what it led to, and the path that leads to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from stepscope.app.palette import NOT_BUSY, STATES
from stepscope.app.present.blocks import (
    AtSpan,
    Block,
    Fact,
    Heading,
    Paragraph,
    Runs,
    Table,
    Tone,
)
from stepscope.app.present.where import lane_name, when
from stepscope.app.timeline import SpanView, Timeline
from stepscope.app.timeline.flows.flow import Tied
from stepscope.app.timeline.flows.path import Path, PathPart
from stepscope.app.timeline.flows.ties import COLLECTIVE, ENDS
from stepscope.app.units import count, duration
from stepscope.ingest.schema import ON_DEVICE
from stepscope.ingest.trace import Trace

MOST_LISTED = 8
MOST_NAMES = 6
MOST_PARTS = 16


def flow_blocks(span: SpanView, timeline: Timeline, trace: Trace) -> Iterator[Block]:
    """What led to a span and what it led to, with links; says what is not recorded."""
    flows = timeline.flows
    numbers = flows.num_tied(span)
    unknown = _unknown(span, timeline, trace) if not numbers[0] else ""
    if numbers[0] or unknown:
        yield Heading("preceding")
    if unknown:
        yield Paragraph(unknown, Tone.MUTED)
    for tied in flows.preceding(span, MOST_LISTED):
        yield _line(tied, 0, tied.span.end_ns, span.start_ns, timeline)
    yield from _rest(numbers[0])
    if numbers[1]:
        yield Heading("following")
    for tied in flows.following(span, MOST_LISTED):
        yield _line(tied, 1, span.end_ns, tied.span.start_ns, timeline)
    yield from _rest(numbers[1])


def path_blocks(span: SpanView, timeline: Timeline) -> Iterator[Block]:
    """The path that leads to a span: what it adds up to, and its last parts, latest first."""
    path = timeline.flows.path_to(span)
    if path is None:
        return
    yield Heading("path to it")
    whole, gaps = path.spans_ns, path.gaps_ns
    yield Fact("spans", (duration(whole),))
    yield Fact("runs", (f"{duration(whole - gaps)}{_share(whole - gaps, whole)}",))
    yield Fact("gaps", (f"{duration(gaps)}{_share(gaps, whole)}",))
    if path.is_cut:
        num = sum(not each.is_gap for each in path.parts)
        yield Paragraph(f"It goes back further: these are its last {count(num)} spans.", Tone.MUTED)
    yield _by_name(path, timeline)
    yield Heading("latest first")
    for part in path.parts[: -MOST_PARTS - 1 : -1]:
        yield _part(part, timeline)
    if len(path.parts) > MOST_PARTS:
        yield Paragraph(f"and {count(len(path.parts) - MOST_PARTS)} before", Tone.MUTED)


def at_span(span: SpanView, timeline: Timeline) -> AtSpan:
    """Leads to a span."""
    return AtSpan(span.lane, span.start_ns - timeline.bounds[0])


def _line(tied: Tied, end: int, ended_ns: int, begins_ns: int, timeline: Timeline) -> Runs:
    gap = begins_ns - ended_ns
    if tied.kind == COLLECTIVE:
        return _entered(tied, end, timeline)
    apart = f"{duration(gap)} apart" if gap >= 0 else f"{duration(-gap)} over each other"
    lane = lane_name(timeline.lanes[tied.span.lane])
    parts = (
        (f"{ENDS[tied.kind][end]} ", Tone.MUTED),
        (tied.span.label or timeline.called(tied.span.state), Tone.TEXT),
        (f"  {apart}, {lane}", Tone.MUTED),
    )
    return Runs(parts, at_span(tied.span, timeline))


def _entered(tied: Tied, end: int, timeline: Timeline) -> Runs:
    """A call of the same collective on another rank, which was entered before or after."""
    parts = (
        (f"{ENDS[tied.kind][end]} ", Tone.MUTED),
        (tied.span.label, Tone.TEXT),
        (f"  at {when(tied.span.start_ns, timeline, 1)}, ", Tone.MUTED),
        (lane_name(timeline.lanes[tied.span.lane]), Tone.MUTED),
    )
    return Runs(parts, at_span(tied.span, timeline))


def _rest(number: int) -> Iterator[Block]:
    if number > MOST_LISTED:
        yield Paragraph(f"and {count(number - MOST_LISTED)} more", Tone.MUTED)


def _unknown(span: SpanView, timeline: Timeline, trace: Trace) -> str:
    """Why nothing is told of what led to a span, where something must have."""
    table, _ = span.ref
    if table == "core_spans" and not trace.has("task_edges"):
        return "Which tasks wait for which is not recorded."
    row = timeline.row(span.ref) if table in ("spans", "lifecycle") else {}
    if table == "spans" and str(row.get("category") or "").lower() in ON_DEVICE:
        return "The call that launched it is not in the file."
    if table == "lifecycle" and row.get("event") == "preempt":
        whom = row.get("by_request")
        if whom is None:
            return "For whom it was preempted is not recorded."
        if whom == row["request"]:
            return "It was preempted for itself: nobody else gave way."
        return f"It was preempted for {whom}, which is on no lane at that time."
    return ""


def _by_name(path: Path, timeline: Timeline) -> Table:
    sums: Counter[str] = Counter()
    for part in path.parts:
        sums[_called(part, timeline)] += part.ns
    whole = max(path.spans_ns, 1)
    ranked = sorted(sums.items(), key=lambda each: (-each[1], each[0]))
    rows = tuple((name, duration(ns), f"{ns / whole:.1%}") for name, ns in ranked[:MOST_NAMES])
    more = len(ranked) - len(rows)
    return Table(("what", "sum", "share"), rows, to_right=("sum", "share"), num_more=more)


def _part(part: PathPart, timeline: Timeline) -> Runs:
    lane = lane_name(timeline.lanes[part.lane])
    tone = Tone.MUTED if part.is_gap else Tone.TEXT
    led = "" if part.is_gap or part.led not in ENDS else f" {ENDS[part.led][1]} the next"
    parts = (
        (f"{duration(part.ns):>9}  ", Tone.MUTED),
        (_called(part, timeline), tone),
        (f"  {lane}{led}", Tone.MUTED),
    )
    own = None if part.number is None else timeline.flows.view(part.number)
    return Runs(parts, at_span(own, timeline) if own else None)


def _called(part: PathPart, timeline: Timeline) -> str:
    """A span by its name, a gap by what the lane was in."""
    if part.number is None:
        return "idle"
    span = timeline.flows.view(part.number)
    if span.state in NOT_BUSY:
        return STATES[span.state].name
    label = span.label or timeline.called(span.state)
    return f"in {label}" if part.is_gap else label


def _share(ns: int, whole: int) -> str:
    return f", {ns / whole:.1%}" if whole else ""
