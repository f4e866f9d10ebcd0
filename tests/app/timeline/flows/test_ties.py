"""What led to what: launches, tasks, preemptions and the arrows of a file."""

from __future__ import annotations

from typing import Any

from stepscope.app.timeline import SpanView, Timeline
from stepscope.app.timeline.flows.ties import ARROW, LAUNCH, PREEMPTION, TASK
from stepscope.ingest.trace import Trace
from tests.app.timeline.profiles import call, kernel
from tests.traces import trace_of

Row = dict[str, Any]


def shown(timeline: Timeline, label: str, start_ns: int | None = None) -> SpanView:
    """The span of this label, the first or the one that begins at a time."""
    return next(
        span
        for lane in timeline.lanes
        for span in timeline.spans(lane.id, *timeline.bounds, 100)
        if span.label == label and start_ns in (None, span.start_ns)
    )


def preceding(timeline: Timeline, span: SpanView) -> list[tuple[int, str, int]]:
    return [(tied.kind, tied.span.label, tied.span.start_ns)
            for tied in timeline.flows.preceding(span)]  # fmt: skip


def following(timeline: Timeline, span: SpanView) -> list[tuple[int, str, int]]:
    return [(tied.kind, tied.span.label, tied.span.start_ns)
            for tied in timeline.flows.following(span)]  # fmt: skip


def test_a_call_launches_all_kernels_of_its_correlation() -> None:
    spans = [
        call("cudaGraphLaunch", 0, 5, correlation=1),
        kernel("a", 10, 5, correlation=1),
        kernel("b", 20, 5, correlation=1),
        kernel("c", 30, 5, correlation=2),
    ]
    timeline = Timeline.of(trace_of(spans=spans))

    launch = shown(timeline, "cudaGraphLaunch")
    assert following(timeline, launch) == [(LAUNCH, "a", 10), (LAUNCH, "b", 20)]
    assert preceding(timeline, shown(timeline, "b")) == [(LAUNCH, "cudaGraphLaunch", 0)]
    assert preceding(timeline, shown(timeline, "c")) == []


def test_of_several_calls_of_one_correlation_the_first_launched() -> None:
    """However many rows share a number, there are no more arrows than kernels."""
    calls = [call(f"call {at}", at, 1, correlation=1) for at in range(50, 0, -1)]
    kernels = [kernel(f"k{at}", 100 + at, 1, correlation=1) for at in range(50)]
    timeline = Timeline.of(trace_of(spans=[*calls, *kernels]))

    assert len(timeline.flows.ties) == 50
    assert preceding(timeline, shown(timeline, "k7")) == [(LAUNCH, "call 1", 1)]


def test_a_correlation_of_another_rank_launches_nothing() -> None:
    spans = [call("launch", 0, 5, correlation=1), kernel("a", 10, 5, correlation=1, rank=1)]

    assert len(Timeline.of(trace_of(spans=spans)).flows.ties) == 0


def block(task: int, number: int, core: int, start: int, end: int) -> Row:
    return {
        "task": task, "block": number, "shape": "AIC", "group": core, "core": core,
        "core_kind": "AIC", "ts_ns": start, "dispatch_ns": start, "end_ns": end,
    }  # fmt: skip


def graph(**more: Any) -> Trace:
    """Task 1 on two cores, then task 2 on two."""
    tasks = [
        {"task": task, "name": f"task-{task}", "shape": "AIC", "num_blocks": 2, "ts_ns": 0}
        for task in (1, 2)
    ]
    blocks = [block(1, 0, 0, 0, 10), block(1, 1, 1, 0, 30), block(2, 0, 0, 35, 50),
              block(2, 1, 1, 40, 60)]  # fmt: skip
    return trace_of(tasks=tasks, core_spans=blocks, **more)


def test_the_block_that_ended_last_released_the_task_that_waited() -> None:
    timeline = Timeline.of(graph(task_edges=[{"from_task": 1, "to_task": 2}] * 2))

    for label in ("task-2 0/2", "task-2 1/2"):
        assert preceding(timeline, shown(timeline, label)) == [(TASK, "task-1 1/2", 0)]
    for label in ("task-1 0/2", "task-1 1/2"):
        assert following(timeline, shown(timeline, label)) == [(TASK, "task-2 0/2", 35)]


def requests(by: str | None) -> Trace:
    """`old` decodes and is preempted at 20 for `new`."""
    steps = [{"step": at, "ts_ns": 20 * at, "dur_ns": 20, "kind": "decode"} for at in range(3)]
    batch = [
        {"step": 0, "ts_ns": 0, "request": "old", "phase": "decode", "num_tokens": 1},
        {"step": 1, "ts_ns": 20, "request": "new", "phase": "prefill", "num_tokens": 7},
    ]
    events = [
        {"ts_ns": 0, "request": "old", "event": "arrive"},
        {"ts_ns": 0, "request": "old", "event": "admit"},
        {"ts_ns": 5, "request": "new", "event": "arrive"},
        {"ts_ns": 20, "request": "old", "event": "preempt", "by_request": by},
        {"ts_ns": 20, "request": "new", "event": "admit"},
    ]
    return trace_of(steps=steps, batch_rows=batch, lifecycle=events)


def test_an_arrow_leads_from_the_request_for_which_another_was_preempted() -> None:
    timeline = Timeline.of(requests("new"))

    assert preceding(timeline, shown(timeline, "preempted")) == [(PREEMPTION, "P 7", 20)]


def test_without_a_recorded_request_nobody_is_blamed_for_a_preemption() -> None:
    for by in (None, "gone"):
        timeline = Timeline.of(requests(by))
        assert preceding(timeline, shown(timeline, "preempted")) == []


def test_arrows_of_the_file_lead_from_end_to_end() -> None:
    track = "python CPU / thread 1"
    spans = [call("forward", 0, 10), call("inner", 2, 4), call("backward", 20, 10)]
    flows = [
        {"ts_ns": 3, "flow": "1", "name": "fwdbwd", "track": track, "end": "start"},
        {"ts_ns": 20, "flow": "1", "name": "fwdbwd", "track": track, "end": "finish"},
        {"ts_ns": 15, "flow": "2", "name": "fwdbwd", "track": track, "end": "start"},
        {"ts_ns": 21, "flow": "2", "name": "fwdbwd", "track": track, "end": "finish"},
    ]
    timeline = Timeline.of(trace_of(spans=spans, flows=flows))

    assert preceding(timeline, shown(timeline, "backward")) == [(ARROW, "inner", 2)]
    assert len(timeline.flows.ties) == 1


def test_a_trace_without_anything_has_no_arrows() -> None:
    assert len(Timeline.of(trace_of()).flows.ties) == 0
