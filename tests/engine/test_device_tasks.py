"""Task graphs: who waits for whom, and what the orchestrator's rings allow."""

from __future__ import annotations

import pytest

from stepscope.engine.device.admission import admission
from stepscope.engine.device.kernels import row, whole
from stepscope.engine.device.rings import Rings
from stepscope.engine.device.tasks import Region, TaskGraph, shape_of
from stepscope.ingest.errors import ConfigError
from tests.engine.device_graphs import run_of


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


@pytest.mark.parametrize(
    ("mask", "shape"),
    [(0, "DUMMY"), (1, "AIC"), (2, "AIV"), (4, "AIV"), (3, "MIX"), (6, "MIX"), (7, "MIX")],
)
def test_two_or_more_cores_make_a_mix(mask: int, shape: str) -> None:
    assert shape_of(mask) == shape


@pytest.mark.parametrize(("mask", "times"), [(8, [1]), (-1, [1]), (1, []), (1, [-5])])
def test_a_launch_that_cannot_be_is_refused(mask: int, times: list[int]) -> None:
    with pytest.raises(ConfigError, match="core mask"):
        TaskGraph().submit("bad", mask, times)


def test_a_ring_gives_nothing_back_before_the_oldest_task_has_retired() -> None:
    graph = TaskGraph()
    long = graph.submit("long", 1, [50_000])
    graph.submit("short", 2, [1_000])
    third = graph.submit("third", 2, [1_000])

    run_of(graph, admission("all-free"), rings=Rings(num_slots=2))

    assert third.submitted_ns >= long.retired_ns > 50_000


def test_a_task_that_can_never_have_its_entries_is_a_deadlock_of_structure() -> None:
    graph = TaskGraph()
    for index in range(3):
        graph.submit("write", 1, [1], writes=[row("x", index)])
    graph.submit("read", 1, [1], reads=[whole("x")])

    with pytest.raises(ConfigError, match="needs 3 dependency entries"):
        run_of(graph, admission("all-free"), rings=Rings(num_entries=2))
