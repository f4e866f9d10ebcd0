"""Task graphs: who waits for whom, and what the orchestrator's rings allow."""

from __future__ import annotations

import pytest

from stepscope.engine.device.admission import admission
from stepscope.engine.device.graphs.kernels import row, whole
from stepscope.engine.device.graphs.tasks import Region, TaskGraph, shape_of
from stepscope.engine.device.rings import Ring, Rings, RingSizes
from stepscope.ingest.errors import ConfigError
from tests.engine.device.drawn_graphs import run_of
from tests.looped import looped

GUARD = admission("all-free")


def edges_of(graph: TaskGraph) -> list[tuple[int, int]]:
    return [(edge.from_task, edge.to_task) for edge in graph.edges]


def test_a_reader_waits_for_the_writer_of_what_it_overlaps() -> None:
    graph = TaskGraph()
    graph.submit("left", 1, [1], writes=[Region("x", 0, 4)])
    graph.submit("right", 1, [1], writes=[Region("x", 4, 8)])
    graph.submit("middle", 2, [1], reads=[Region("x", 3, 5)])
    graph.submit("elsewhere", 2, [1], reads=[Region("y", 3, 5)])

    assert edges_of(graph) == [(0, 2), (1, 2)]


def test_a_writer_waits_for_earlier_readers_and_writers() -> None:
    graph = TaskGraph()
    graph.submit("write", 1, [1], writes=[row("x", 0)])
    graph.submit("read", 1, [1], reads=[row("x", 0)])
    graph.submit("overwrite", 1, [1], writes=[row("x", 0)])

    assert edges_of(graph) == [(0, 1), (0, 2), (1, 2)]


def test_readers_of_one_tensor_do_not_wait_for_each_other() -> None:
    graph = TaskGraph()
    for _ in range(3):
        graph.submit("read", 1, [1], reads=[whole("x")])

    assert graph.edges == []


def test_a_write_hides_what_it_covers_from_later_tasks() -> None:
    graph = TaskGraph()
    graph.submit("part", 1, [1], writes=[row("x", 1)])
    graph.submit("all", 1, [1], writes=[whole("x")])
    graph.submit("read", 1, [1], reads=[row("x", 1)])

    assert edges_of(graph) == [(0, 1), (1, 2)]


def test_a_task_that_reads_what_it_writes_does_not_wait_for_itself() -> None:
    graph = TaskGraph()
    graph.submit("in place", 1, [1], reads=[whole("x")], writes=[whole("x")])

    assert graph.edges == []


def test_an_edge_names_the_tensor_that_made_it() -> None:
    graph = TaskGraph(first_id=7)
    graph.submit("write", 1, [1], writes=[whole("kv")])
    graph.submit("read", 1, [1], reads=[whole("kv")])

    assert [(e.from_task, e.to_task, e.source) for e in graph.edges] == [(7, 8, "kv")]


@looped(
    ("mask", "shape"),
    [(0, "DUMMY"), (1, "AIC"), (2, "AIV"), (4, "AIV"), (3, "MIX"), (6, "MIX"), (7, "MIX")],
)
def test_two_or_more_cores_make_a_mix(mask: int, shape: str) -> None:
    assert shape_of(mask) == shape


@looped(("mask", "times"), [(8, [1]), (-1, [1]), (1, []), (1, [-5])])
def test_a_launch_that_cannot_be_is_refused(mask: int, times: list[int]) -> None:
    with pytest.raises(ConfigError, match="core mask"):
        TaskGraph().submit("bad", mask, times)


def test_a_ring_gives_nothing_back_before_the_oldest_task_has_retired() -> None:
    graph = TaskGraph()
    long = graph.submit("long", 1, [50_000])
    graph.submit("short", 2, [1_000])
    third = graph.submit("third", 2, [1_000])

    run_of(graph, admission("all-free"), rings=Rings(RingSizes(num_slots=2)))

    assert third.submitted_ns >= long.retired_ns > 50_000


def test_a_task_that_can_never_have_its_entries_is_a_deadlock_of_structure() -> None:
    graph = TaskGraph()
    for index in range(3):
        graph.submit("write", 1, [1], writes=[row("x", index)])
    graph.submit("read", 1, [1], reads=[whole("x")])

    with pytest.raises(ConfigError, match="needs 3 dependency entries"):
        run_of(graph, admission("all-free"), rings=Rings(RingSizes(num_entries=2)))


def test_a_full_heap_holds_the_orchestrator_back_until_the_oldest_outputs_are_given_back() -> None:
    graph = TaskGraph()
    long = graph.submit("long", 1, [50_000], heap_bytes=60)
    graph.submit("short", 2, [1_000], heap_bytes=30)
    third = graph.submit("third", 2, [1_000], heap_bytes=20)

    run = run_of(graph, GUARD, rings=Rings(RingSizes(num_heap_bytes=100)))

    assert third.submitted_ns >= long.retired_ns > 50_000
    assert run.stall is None


def test_full_dependency_entries_hold_the_orchestrator_back_too() -> None:
    graph = TaskGraph()
    graph.submit("head", 1, [50_000], writes=[whole("x")])
    after = graph.submit("after", 2, [1_000], reads=[whole("x")])
    last = graph.submit("last", 2, [1_000], reads=[whole("x")])

    run_of(graph, GUARD, rings=Rings(RingSizes(num_entries=1)))

    assert last.submitted_ns >= after.retired_ns > 50_000


def test_outputs_do_not_go_round_the_end_of_the_heap() -> None:
    heap = Ring("heap bytes", 100, is_contiguous=True)
    heap.claim(60)
    heap.claim(30)
    heap.give_back()

    assert heap.held == 30
    assert heap.has_room(60)  # at the start, behind ten bytes that are skipped
    assert not heap.has_room(61)
    heap.claim(60)
    assert heap.held == 100


def test_a_scope_larger_than_a_ring_is_a_deadlock_that_is_known_at_once() -> None:
    graph = TaskGraph()
    graph.submit("before", 1, [50_000])
    with graph.scope():
        for _ in range(3):
            graph.submit("inside", 1, [1_000])

    run = run_of(graph, GUARD, rings=Rings(RingSizes(num_slots=2)))

    assert run.stall == (
        "scope deadlock: inside has to wait until its own scope has ended, which holds 2 of 2 "
        "task slots"
    )
    assert 50_000 < run.end_ns < 100_000


def test_a_scope_that_fits_lets_go_of_its_tasks_when_it_has_ended() -> None:
    graph = TaskGraph()
    for _ in range(3):
        with graph.scope():
            graph.submit("inside", 1, [1_000])
            graph.submit("inside", 1, [1_000])

    run = run_of(graph, GUARD, rings=Rings(RingSizes(num_slots=2)))

    assert run.stall is None
    assert {task.outcome for task in graph.tasks} == {"run"}


def test_no_progress_is_told_apart_from_a_deadlock_and_names_the_ring() -> None:
    graph = TaskGraph()
    graph.submit("long", 1, [50_000])
    for _ in range(4):
        graph.submit("short", 2, [1_000])
    rings = Rings(RingSizes(num_slots=3), loses_advance=True)

    run = run_of(graph, GUARD, rings=rings)

    assert run.stall == (
        "1 tasks left and no progress for 500 ms; nothing is in flight, 3 of 3 task slots are held"
    )


def test_a_completion_that_is_lost_leaves_what_waits_for_it_waiting() -> None:
    graph = TaskGraph()
    first = graph.submit("first", 2, [10_000], writes=[whole("x")])
    second = graph.submit("second", 4, [10_000])
    after = graph.submit("after", 1, [1_000], reads=[whole("x")])

    run = run_of(graph, GUARD, groups=1, faults=frozenset({"deferred-completion-lost"}))

    assert (first.outcome, second.outcome) == ("pending", "run")
    assert first.retired_ns > 10_000  # its block has ended on its core all the same
    assert after.ready_ns < 0
    assert run.stall == "2 tasks left and no progress for 500 ms; nothing is in flight"


def test_a_slot_that_is_popped_twice_runs_a_block_twice_and_retires_its_task_too_soon() -> None:
    graph = TaskGraph()
    task = graph.submit("task", 1, [90_000, 5_000], writes=[whole("x")])
    graph.submit("next", 1, [1_000])
    after = graph.submit("after", 2, [1_000], reads=[whole("x")])

    faults = frozenset({"pop-returns-consumed-slot"})
    run = run_of(graph, GUARD, groups=4, threads=2, faults=faults)

    parts = [part for part in run.parts if part.task is task]
    assert [part.block for part in parts] == [0, 1, 1]
    assert len({part.core.id for part in parts}) == 3
    assert parts[0].end_ns < 0  # it still ran when the graph was taken to be done
    (follower,) = [part for part in run.parts if part.task is after]
    assert 0 < follower.start_ns < 90_000
