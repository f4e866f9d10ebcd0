"""What the details pane says: what, evidence, why, state before and after, how to fix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stepscope.analyzers.findings.finding import Finding
from stepscope.app.palette import HELD, IDLE, PREEMPTED, SEVERITY_MARKS, STATES, WAITING
from stepscope.app.present.facts import arguments, before_and_after, reasons, row_facts, whereabouts
from stepscope.app.present.where import lane_name, when
from stepscope.app.timeline import Lane, SpanView, Sum, Timeline
from stepscope.app.tui.ink import MUTED, PANEL, TEXT, ink
from stepscope.app.tui.view_state import Selection
from stepscope.app.tui.widgets.prose import Block, Fact, Heading, Links, Painted, Paragraph, Title
from stepscope.app.tui.widgets.text_bar import Piece
from stepscope.app.units import count, duration, quantity
from stepscope.ingest.trace import Trace

MAX_REASONS = 2
MAX_COLUMNS = 40
NOT_BUSY = (HELD, WAITING, PREEMPTED, IDLE)


def describe(selection: Selection, timeline: Timeline, trace: Trace) -> list[Block]:
    """Blocks for what is selected; how to select something when nothing is.

    Looks rows up in the trace, so call it from a thread.
    """
    if selection.mark:
        return list(range_blocks(*selection.mark, selection.section, timeline))
    if selection.finding:
        return list(finding_blocks(selection.finding, timeline, trace))
    if selection.span:
        return list(span_blocks(selection.span, timeline))
    return list(_nothing())


def finding_blocks(found: Finding, timeline: Timeline, trace: Trace) -> Iterator[Block]:
    """Everything about a finding, in the order in which it is asked."""
    mark = SEVERITY_MARKS[found.severity]
    yield Title(f"{mark.glyph} {found.code} {found.name}", mark.colour)
    yield Paragraph(found.message)
    yield Paragraph(" · ".join(whereabouts(found, timeline)), MUTED)
    known = {name: value for name, value in found.evidence.items() if value is not None}
    if known:
        yield Heading("evidence")
    for name, value in known.items():
        label, shown = quantity(name, value)
        yield Fact(label, (shown,))
    if recorded := reasons(found, trace, MAX_REASONS):
        yield Heading("why, as recorded")
        yield from (Paragraph(f"· {reason}") for reason in recorded)
    if around := before_and_after(found, timeline):
        yield Heading("state before · after")
        yield from (Fact(name, (before, after)) for name, before, after in around)
    yield Heading("how to fix")
    yield Paragraph(found.fix)
    yield Links(((f"explain {found.code}", f"app.explain('{found.code}')"),))


def span_blocks(span: SpanView, timeline: Timeline) -> Iterator[Block]:
    """A span: what, where, when, and the whole row that it stands for."""
    yield Title(span.label or STATES[span.state].name)
    yield Paragraph(f"{STATES[span.state].name} on {lane_name(timeline.lanes[span.lane])}", MUTED)
    yield Heading("when")
    yield Fact("starts", (when(span.start_ns, timeline, 1),))
    yield Fact("ends", (when(span.end_ns, timeline, 1),))
    yield Fact("takes", (duration(span.end_ns - span.start_ns),))
    yield Heading(f"{span.ref[0]} row {span.ref[1]:,}")
    yield from (Fact(label, (text,)) for label, text in row_facts(span, timeline))
    if found := arguments(span, timeline):
        yield Heading("arguments")
        yield from (Fact(label, (text,)) for label, text in found)


def range_blocks(
    start_ns: int, end_ns: int, section: str | None, timeline: Timeline
) -> Iterator[Block]:
    """A marked range: how long it is, and how busy the lanes of a section are in it."""
    yield Title(f"{duration(end_ns - start_ns)} marked")
    yield Fact("from", (when(start_ns, timeline, 1),))
    yield Fact("to", (when(end_ns, timeline, 1),))
    lanes = [lane for lane in timeline.lanes if lane.section == section and lane.kind != "counter"]
    if end_ns <= start_ns or not lanes:
        return
    yield Heading("busy in it")
    told = [(lane, timeline.sums(lane.id, start_ns, end_ns)) for lane in lanes]
    told.sort(key=lambda each: -busy_ns(each[1]))
    for lane, sums in told[:MAX_COLUMNS]:
        yield Painted(_lane_in_range(lane, sums, end_ns - start_ns))


def busy_ns(sums: Mapping[int, Sum]) -> int:
    """Time in which something was done: who waits or holds a core does nothing."""
    return sum(each.ns for state, each in sums.items() if state not in NOT_BUSY)


def _lane_in_range(lane: Lane, sums: Mapping[int, Sum], length_ns: int) -> tuple[Piece, ...]:
    num_spans = sum(each.num_spans for state, each in sums.items() if state not in NOT_BUSY)
    other = [
        f", {STATES[state].name} {sums[state].ns / length_ns:.1%}"
        for state in NOT_BUSY
        if state in sums and sums[state].ns
    ]
    spans = f", {count(num_spans)} span{'' if num_spans == 1 else 's'}"
    return (
        Piece(f"{busy_ns(sums) / length_ns:>6.1%}  ", ink(TEXT, PANEL)),
        Piece(f"{lane_name(lane)}{spans}{''.join(other)}", ink(MUTED, PANEL)),
    )


def _nothing() -> Iterator[Block]:
    yield Title("Nothing selected")
    yield Paragraph("Click a span, or walk along a lane with h and l, between lanes with j and k.")
    yield Paragraph("n goes to the next finding, m marks a range, ? shows every key.", MUTED)
