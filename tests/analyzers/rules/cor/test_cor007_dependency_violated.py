"""COR007: a task begins before one that it waits for has ended."""

from __future__ import annotations

from pathlib import Path

from stepscope.analyzers.rules.cor.cor007_dependency_violated import DependencyViolated
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import Row, part, task
from tests.looped import looped
from tests.traces import trace_of

TASKS = [task(1, "qk r0"), task(2, "softmax r0")]


def edge(before: int, after: int, source: str = "scores") -> Row:
    return {"from_task": before, "to_task": after, "source": source}


def test_a_task_that_began_too_early_is_found_with_what_it_should_have_waited_for() -> None:
    spans = [part(1, 0, 0, 5_000), part(2, 1, 3_000, 6_000)]

    (found,) = DependencyViolated().check(
        trace_of(core_spans=spans, tasks=TASKS, task_edges=[edge(1, 2)])
    )

    assert (found.task, found.core, found.ts_ns, found.end_ns) == (2, 1, 3_000, 5_000)
    assert found.message == (
        "softmax r* began before qk r* had ended, on 1 of 1 edge, by 2.0 µs at worst"
    )
    assert found.evidence["edge"] == "scores"


def test_the_last_block_of_the_earlier_task_counts() -> None:
    spans = [part(1, 0, 0, 1_000), part(1, 2, 0, 4_000, block=1), part(2, 1, 2_000, 6_000)]

    (found,) = DependencyViolated().check(trace_of(core_spans=spans, task_edges=[edge(1, 2)]))

    assert found.evidence["had not ended"] == "task 1 1"


def test_a_task_that_is_staged_early_and_begins_in_time_is_clean() -> None:
    spans = [part(1, 0, 0, 5_000), part(2, 1, 5_000, 6_000, dispatch_ns=100, ready_ns=100)]

    assert DependencyViolated().check(trace_of(core_spans=spans, task_edges=[edge(1, 2)])) == []


def test_an_edge_that_is_recorded_twice_counts_once() -> None:
    spans = [part(1, 0, 0, 5_000), part(2, 1, 3_000, 6_000)]
    edges = [edge(1, 2, "tensor"), edge(1, 2, "explicit")]

    (found,) = DependencyViolated().check(trace_of(core_spans=spans, task_edges=edges))

    assert found.count == 1


def test_edges_between_two_kernels_are_one_finding_placed_at_the_worst() -> None:
    spans = [part(n, 0, 10_000 * n, 10_000 * n + 5_000) for n in (1, 3)]
    spans += [part(2, 1, 14_000, 16_000), part(4, 1, 31_000, 36_000)]
    tasks = [*TASKS, task(3, "qk r1"), task(4, "softmax r1")]

    (found,) = DependencyViolated().check(
        trace_of(core_spans=spans, tasks=tasks, task_edges=[edge(1, 2), edge(3, 4)])
    )

    assert (found.count, found.task) == (2, 4)
    assert found.evidence["worst_early_ns"] == 4_000


def test_a_dummy_ended_when_it_retired() -> None:
    dummy = task(1, "join", shape="DUMMY", retired_ns=4_000, outcome="dummy")
    trace = trace_of(core_spans=[part(2, 1, 3_000, 6_000)], tasks=[dummy], task_edges=[edge(1, 2)])

    (found,) = DependencyViolated().check(trace)

    assert found.evidence["worst_early_ns"] == 1_000


@looped(("closed", "count"), [(True, 1), (False, 0)])
def test_what_never_ended_counts_only_when_no_row_can_be_missing(closed: bool, count: int) -> None:
    spans = [part(1, 0, 0, None), part(2, 1, 3_000, 6_000)]
    trace = trace_of(core_spans=spans, task_edges=[edge(1, 2)], closed=closed)

    found = DependencyViolated().check(trace)

    assert len(found) == count
    assert all("never ended" in each.message for each in found)


@looped("case", ["TestQwen2L_StressBatch16Seq3500", "TestBenchmarkBgemm_Case1"])
def test_a_real_runtime_keeps_its_dependencies(shared_data: Path, case: str) -> None:
    trace = Trace.open(shared_data / "swimlane" / case)

    assert trace.num_rows("task_edges") in {96, 1185}
    assert DependencyViolated().check(trace) == []


def test_a_real_trace_in_which_a_start_is_moved_is_found(shared_data: Path) -> None:
    trace = Trace.open(shared_data / "swimlane" / "TestBenchmarkBgemm_Case1")
    tables = {name: trace.table(name).collect() for name in ("tasks", "core_spans", "task_edges")}
    after = tables["task_edges"]["to_task"][0]
    early = tables["core_spans"].to_dicts()
    for row in early:
        if row["task"] == after:
            row["ts_ns"] = row["dispatch_ns"] = 0
    moved = trace_of(
        core_spans=early,
        tasks=tables["tasks"].to_dicts(),
        task_edges=tables["task_edges"].to_dicts(),
    )

    found = DependencyViolated().check(moved)

    assert found[0].task == after
