"""The details of what is selected: a finding, a span, a marked range; the same in both fronts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.findings.wording import times
from stepscope.app.palette import ABSENT, BLOCKED, NOT_BUSY, SEVERITY_MARKS, STATES
from stepscope.app.present.blocks import (
    AtRequest,
    AtStep,
    Block,
    Fact,
    Heading,
    Items,
    Link,
    Links,
    Paragraph,
    RulePage,
    Runs,
    Title,
    Tone,
)  # fmt: skip
from stepscope.app.present.facts import (
    arguments,
    before_and_after,
    client_ids,
    reasons,
    row_facts,
    whereabouts,
)  # fmt: skip
from stepscope.app.present.inspected.block_owner import ownership_blocks
from stepscope.app.present.inspected.buffer_contents import (
    access_blocks,
    segment_blocks,
    step_of_row,
)
from stepscope.app.present.inspected.collective_call import call_blocks
from stepscope.app.present.inspected.core_state import core_blocks, group_blocks
from stepscope.app.present.inspected.engine_gap import gap_blocks
from stepscope.app.present.inspected.slot_stay import slot_blocks
from stepscope.app.present.inspected.span_wait import wait_blocks
from stepscope.app.present.inspected.step_work import step_blocks
from stepscope.app.present.spans.flag_words import flag_blocks
from stepscope.app.present.spans.flow_words import flow_blocks, path_blocks
from stepscope.app.present.where import lane_name, when
from stepscope.app.timeline import Lane, SpanView, Sum, Timeline
from stepscope.app.timeline.area.selection import Selection
from stepscope.app.timeline.section_states import state_of
from stepscope.app.units import count, duration, quantity
from stepscope.ingest.trace import Trace

MAX_REASONS = 3
MAX_LANES = 40


def selection_blocks(selection: Selection, timeline: Timeline, trace: Trace) -> list[Block]:
    """What is selected, by what counts first; empty where nothing is.

    Looks rows up in the trace, so a front calls it from a thread.
    """
    if selection.mark:
        return list(range_blocks(*selection.mark, selection.lanes, timeline))
    if selection.finding:
        of_it = finding_blocks(selection.finding, timeline, trace)
        return [*flag_blocks(selection.flags), *of_it]
    span, point = selection.span, selection.point
    blocks: list[Block] = [*flag_blocks(selection.flags)]
    if span:
        blocks += [*span_blocks(span, timeline, trace, with_path=selection.with_path)]
    if point:
        at_core = list(core_blocks(*point, timeline, trace))
        if span is None:
            blocks += gap_blocks(*point, timeline, trace)
        title = [Title(lane_name(timeline.lanes[point[0]]))]
        blocks += [*([] if blocks or not at_core else title), *at_core]
    return blocks


def finding_blocks(found: Finding, timeline: Timeline, trace: Trace) -> Iterator[Block]:
    """Everything about a finding, in the order in which it is asked."""
    glyph = SEVERITY_MARKS[found.severity].glyph
    yield Title(f"{glyph} {found.code} {found.name}", Tone(found.severity))
    yield Paragraph(found.message)
    yield Paragraph(" · ".join(whereabouts(found, timeline)), Tone.MUTED)
    known = [(name, value) for name, value in found.evidence.items() if value is not None]
    if known:
        yield Heading("evidence")
    yield from _facts(quantity(name, value) for name, value in known)
    if recorded := reasons(found, trace, MAX_REASONS):
        yield Heading("why, as recorded")
        yield Items(tuple(recorded))
    if around := before_and_after(found, timeline):
        yield Heading("state before · after")
        yield from (Fact(name, (before, after)) for name, before, after in around)
    lane = timeline.lane_of(found)
    if lane is not None and found.ts_ns is not None:
        yield from group_blocks(lane, found.ts_ns, timeline, trace)
    yield Heading("how to fix")
    yield Paragraph(found.fix)
    yield Links(tuple(_links(found, timeline)))


def span_blocks(
    span: SpanView, timeline: Timeline, trace: Trace, *, with_path: bool = False
) -> Iterator[Block]:
    """A span: what, where, when, what led to it, and the whole row that it stands for."""
    state = state_of(span, timeline)
    if span.ref[0] == "spans":
        state = timeline.row(span.ref).get("category") or "span"
    yield Title(span.label or state)
    yield Paragraph(f"{state} on {lane_name(timeline.lanes[span.lane])}", Tone.MUTED)
    yield from slot_blocks(span, timeline, trace)
    yield from wait_blocks(span, timeline, trace)
    yield from step_blocks(span, timeline, trace)
    yield from segment_blocks(span, trace)
    yield from access_blocks(span, timeline, trace)
    yield from call_blocks(span, timeline, trace)
    yield from ownership_blocks(span, timeline, trace)
    yield from _facts(client_ids(span, timeline, trace))
    yield Heading("when")
    yield Fact("starts", (when(span.start_ns, timeline, 1),))
    if span.ref[0] == "accesses" and span.start_ns == span.end_ns:
        yield Fact("takes", ("not recorded: it is told when it was issued",))
    elif span.state in (BLOCKED, ABSENT):
        yield Fact("ends", ("never, as far as is recorded",))
    else:
        yield Fact("ends", (when(span.end_ns, timeline, 1),))
        yield Fact("takes", (duration(span.end_ns - span.start_ns),))
    yield from path_blocks(span, timeline) if with_path else ()
    yield from flow_blocks(span, timeline, trace)
    yield Heading(f"{span.ref[0]} row {span.ref[1]:,}")
    yield from _facts(row_facts(span, timeline))
    if found := arguments(span, timeline):
        yield Heading("arguments")
        yield from _facts(found)
    if who := timeline.request_in(span):
        yield Links((Link("its request", AtRequest(*who)),))
    if (step := step_of_row(span, timeline)) is not None:
        yield Links((Link(f"step {count(step)}", AtStep(step)),))


def range_blocks(
    start_ns: int, end_ns: int, lanes: Sequence[int], timeline: Timeline
) -> Iterator[Block]:
    """A marked range: how long it is, and how busy some lanes are in it."""
    yield Title(f"{duration(end_ns - start_ns)} marked")
    yield Fact("from", (when(start_ns, timeline, 1),))
    yield Fact("to", (when(end_ns, timeline, 1),))
    own = [timeline.lanes[lane] for lane in lanes if timeline.lanes[lane].kind != "counter"]
    if end_ns <= start_ns or not own:
        return
    yield Heading("busy in it")
    told = [(lane, timeline.sums(lane.id, start_ns, end_ns)) for lane in own]
    told.sort(key=lambda each: -busy_ns(each[1]))
    for lane, sums in told[:MAX_LANES]:
        yield _lane_in_range(lane, sums, end_ns - start_ns)
    yield Paragraph(
        "Names, states and lengths are summed under Area; M sums other lanes.", Tone.MUTED
    )


def busy_ns(sums: Mapping[int, Sum]) -> int:
    """Time in which something was done: who waits or holds a core does nothing."""
    return sum(each.ns for state, each in sums.items() if state not in NOT_BUSY)


def _lane_in_range(lane: Lane, sums: Mapping[int, Sum], length_ns: int) -> Runs:
    num_spans = sum(each.num_spans for state, each in sums.items() if state not in NOT_BUSY)
    other = [
        f", {STATES[state].name} {sums[state].ns / length_ns:.1%}"
        for state in NOT_BUSY
        if state in sums and sums[state].ns
    ]
    spans = f", {times(num_spans, 'span')}"
    share = f"{busy_ns(sums) / length_ns:>6.1%}  "
    return Runs(((share, Tone.TEXT), (f"{lane_name(lane)}{spans}{''.join(other)}", Tone.MUTED)))


def _facts(told: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> Iterator[Block]:
    return (Fact(label, (text,)) for label, text in told)


def _links(found: Finding, timeline: Timeline) -> Iterator[Link]:
    yield Link(f"explain {found.code}", RulePage(found.code))
    if found.request is not None:
        yield Link("its request", AtRequest(found.rank or 0, found.request))
    # A step of the same number of another rank is another step.
    if found.step is not None and found.rank in (None, timeline.walked_rank):
        yield Link(f"step {count(found.step)}", AtStep(found.step))
