"""Why a request waited over a span of its lane: as `blame`, `why` and the rows say it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
import pytest

from stepscope.analyzers.latency.blame import blame
from stepscope.analyzers.latency.causes import BY_NAME
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.why import why
from stepscope.app.palette import (
    DECODE,
    FRONT_END,
    IDLE,
    PREEMPTED,
    PREFILL,
    REASONS,
    STATES,
    WAITING,
    WAITS,
)
from stepscope.app.present.blocks import AtChange, AtSpan, Block, Fact, Heading, Paragraph, Table
from stepscope.app.present.inspected.span_wait import wait_blocks, wait_of
from stepscope.app.present.longest_waits import WAITS as WAIT_CAUSES
from stepscope.app.present.longest_waits import longest_waits
from stepscope.app.timeline import SpanView, Timeline
from stepscope.app.timeline.lanes.wait_reasons import STATE_OF_CAUSE
from stepscope.app.units import duration
from stepscope.ingest.derive.states import ENTERS
from stepscope.ingest.manifest import ClockInfo
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import event, life
from tests.conftest import ROOT
from tests.traces import trace_of

CROWD = ROOT / "sample_traces" / "vllm_crowd.trace"
LEFT_OUT = (*WAITS, PREEMPTED, IDLE, FRONT_END)


@pytest.fixture(scope="module")
def crowd() -> Trace:
    return Trace.open(CROWD)


@pytest.fixture(scope="module")
def timeline(crowd: Trace) -> Timeline:
    return Timeline(crowd)


def unreported(what: str, done: int, total: int | None) -> None:
    """Progress that nobody looks at."""


def spans_of(timeline: Timeline, *states: int) -> list[tuple[str, SpanView]]:
    """All spans of requests in some states, each with its request."""
    return [
        (who[1], span)
        for lane in timeline.lanes
        if lane.section == "requests" and (who := timeline.request_of(lane.id))
        for span in timeline.spans(lane.id, *timeline.bounds, 10_000)
        if span.state in states
    ]


def in_queue(timeline: Timeline) -> list[tuple[str, SpanView]]:
    """The whole waits of requests between a batch and a queue, whatever parts they have."""
    waits = {
        (who, timeline.whole(span)._replace(state=WAITING, label=""))
        for who, span in spans_of(timeline, *WAITS)
        if span.ref[0] == "lifecycle" and timeline.row(span.ref)["event"] in ENTERS
    }
    return sorted(waits, key=lambda wait: wait[1].start_ns)


def facts(blocks: list[Block]) -> dict[str, str]:
    return {block.label: block.values[0] for block in blocks if isinstance(block, Fact)}


def test_the_reasons_of_all_spans_of_a_request_are_its_blame(
    crowd: Trace, timeline: Timeline
) -> None:
    found: dict[str, Counter[str]] = {}
    some = ("7-", "12-", "14-", "16-")  # three of them were preempted
    for request, span in spans_of(timeline, *LEFT_OUT):
        if not request.startswith(some):
            continue
        wait = wait_of(crowd, 0, request, span.start_ns, span.end_ns)
        assert sum(reason.ns for reason in wait.reasons) == wait.ns, (request, span)
        own = found.setdefault(request, Counter())
        own.update({reason.cause: reason.ns for reason in wait.reasons})

    assert len(found) == len(some)
    for row in blame(crowd).requests.iter_rows(named=True):
        if row["request"] not in found:
            continue
        of_blame = {cause.name: row[cause.column] for cause in WAIT_CAUSES if row[cause.column]}
        of_spans = {
            name: ns for name, ns in found[row["request"]].items() if BY_NAME[name] in WAIT_CAUSES
        }
        assert of_spans == of_blame, row["request"]


def test_the_parts_of_the_waits_of_a_request_are_the_reasons_of_its_blame(
    crowd: Trace, timeline: Timeline
) -> None:
    found: dict[str, Counter[str]] = {}
    for request, span in spans_of(timeline, *REASONS):
        own = found.setdefault(request, Counter())
        own[STATES[span.state].name] += span.end_ns - span.start_ns

    of_blame: dict[str, Counter[str]] = {}
    for row in blame(crowd).requests.iter_rows(named=True):
        for cause, state in STATE_OF_CAUSE.items():
            if ns := row[BY_NAME[cause].column]:
                own = of_blame.setdefault(row["request"], Counter())
                own[STATES[state].name] += ns

    assert found == of_blame
    assert len({state for own in found.values() for state in own}) == 4


def test_every_part_of_a_wait_leads_to_the_whole_of_it(crowd: Trace, timeline: Timeline) -> None:
    parts = [span for who, span in spans_of(timeline, *WAITS) if who.startswith("12-")]
    [(_, whole)] = [(who, span) for who, span in in_queue(timeline) if who.startswith("12-")]

    assert len(parts) > 2
    for span in parts:
        blocks = [*wait_blocks(span, timeline, crowd)]
        length = duration(span.end_ns - span.start_ns)
        assert blocks[0] == next(iter(wait_blocks(whole, timeline, crowd)))
        assert facts(blocks)["this part"] == f"{STATES[span.state].name}, {length} of it"


def test_the_chain_is_that_of_why_at_the_last_step_before_the_wait_ended(
    crowd: Trace, timeline: Timeline
) -> None:
    session = Debugger(crowd).session
    compared = 0
    for request, span in [*in_queue(timeline), *spans_of(timeline, PREEMPTED)]:
        blocks = [*wait_blocks(span, timeline, crowd)]
        if not any(isinstance(block, Heading) for block in blocks):
            continue
        at = session.moments.position(span.end_ns - 1)
        place = session.moments.place_of(at.step or 0)
        chain = why(session, request, session.moments.at_step(place or 0))
        assert Paragraph(chain.first_line) in blocks, (request, span)
        leads = [block.to for block in blocks if isinstance(block, Fact)]
        proved = [link.proof for link in chain.links if link.proof]
        assert all(AtChange(row.seq, row.step) in leads for row in proved if row.seq is not None)
        compared += 1

    assert compared > 15


def test_who_held_the_blocks_that_it_lacked_is_listed_with_a_place_on_the_timeline(
    crowd: Trace, timeline: Timeline
) -> None:
    [span] = [span for name, span in in_queue(timeline) if name.startswith("12-")]

    blocks = [*wait_blocks(span, timeline, crowd)]

    held = next(b for b in blocks if isinstance(b, Table) and b.title.startswith("who held"))
    session = Debugger(crowd).session
    state = session.state_at(session.moments.at_step(session.moments.place_of(72) or 0))
    owners = Counter((state.kv_blocks or {}).values())
    assert {row[0]: row[1] for row in held.rows} == owners
    assert all(isinstance(lead, AtSpan) for lead in held.leads)
    assert "12-a98f2481 waited 196 ms; 74% of that time" in str(blocks[0])
    assert facts(blocks)["ended by"].startswith("admit at")
    assert facts(blocks)["after"] == "7-926998d2 (finish)"


def test_a_preempted_span_says_for_whom_and_what_was_computed_again(
    crowd: Trace, timeline: Timeline
) -> None:
    again = crowd.batch_rows.filter(pl.col("is_recompute")).collect()
    spans = spans_of(timeline, PREEMPTED)
    counted = 0

    for request, span in spans:
        told = facts([*wait_blocks(span, timeline, crowd)])
        row = timeline.row(span.ref)
        assert told["preempted for"] == row["by_request"], request
        counted += int(told["it cost"].split()[0])

    assert spans
    assert counted == again["num_tokens"].sum()


def test_nothing_is_said_of_spans_in_which_something_ran(crowd: Trace, timeline: Timeline) -> None:
    for _, span in spans_of(timeline, PREFILL, DECODE):
        assert not [*wait_blocks(span, timeline, crowd)]


def test_without_decisions_the_reason_is_not_recorded() -> None:
    trace = trace_of(lifecycle=life("a", 0, 100, 200))
    timeline = Timeline(trace)
    [(_, span)] = in_queue(timeline)

    first, *_ = wait_blocks(span, timeline, trace)

    assert isinstance(first, Paragraph)
    assert "not recorded" in first.text


def test_a_trace_without_a_clock_has_no_wait_in_time() -> None:
    trace = trace_of(lifecycle=life("a", 0, 100, 200), clock=ClockInfo("none"))
    timeline = Timeline(trace)

    for _, span in spans_of(timeline, *LEFT_OUT):
        assert not [*wait_blocks(span, timeline, trace)]


def test_who_waited_longest_comes_first_with_the_root_that_why_gives(crowd: Trace) -> None:
    found = longest_waits(crowd, None, 5, unreported)

    requests = blame(crowd).requests
    waited = requests.select(
        "request", ns=pl.sum_horizontal(cause.column for cause in WAIT_CAUSES)
    ).sort("ns", descending=True, maintain_order=True)
    assert [(row.request, row.waited_ns) for row in found.rows] == waited.head(5).rows()
    assert found.num_waited == len(waited.filter(pl.col("ns") > 0))
    assert all(row.root for row in found.rows)


def test_requests_that_never_waited_are_not_listed() -> None:
    rows: list[Any] = [*life("a", 0, 0, 5), event("b", "arrive", 1)]

    found = longest_waits(trace_of(lifecycle=rows), None, None, unreported)

    assert [row.request for row in found.rows] == ["b"]
    assert found.num_requests == 2
