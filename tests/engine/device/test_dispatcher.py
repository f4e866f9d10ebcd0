"""The scheduler threads' pass, instant by instant."""

from __future__ import annotations

from stepscope.engine.device.admission import admission
from stepscope.engine.device.decision_log import DecisionLog
from stepscope.engine.device.dispatch_costs import Costs
from stepscope.engine.device.dispatcher import Dispatcher
from stepscope.engine.device.events import EventLoop
from stepscope.engine.device.graphs.kernels import whole
from stepscope.engine.device.graphs.tasks import TaskGraph
from stepscope.engine.device.placement import Placement
from stepscope.engine.device.run_log import Run
from stepscope.engine.device.scheduler_state import ReadyQueues
from stepscope.engine.device.topology import Device, Part
from tests.engine.device.drawn_graphs import run_of

COSTS = Costs()
GUARD = admission("all-free")


def parts_named(run: Run, name: str) -> list[Part]:
    return [part for part in run.parts if part.task.name == name]


def test_a_lone_block_takes_what_its_stages_are_documented_to_cost() -> None:
    graph = TaskGraph()
    graph.submit("lone", 1, [10_000])

    run = run_of(graph, GUARD, groups=1, threads=1)

    (part,) = run.parts
    assert part.dispatch_ns == 115 + 140
    assert part.start_ns == part.dispatch_ns + 350
    assert part.end_ns == part.start_ns + 10_000
    assert run.end_ns == part.end_ns + 115 + 100 + 600


def test_a_block_in_a_pending_slot_follows_the_one_before_it_after_a_switch() -> None:
    graph = TaskGraph()
    graph.submit("two", 1, [10_000, 5_000])

    first, second = run_of(graph, GUARD, groups=1, threads=1).parts

    assert (first.slot, second.slot) == ("running", "pending")
    assert second.dispatch_ns < first.end_ns
    assert second.start_ns == first.end_ns + COSTS.switch_ns


def test_even_threads_dispatch_aic_first_and_odd_ones_aiv() -> None:
    graph = TaskGraph()
    graph.submit("cube", 1, [9_000] * 2)
    graph.submit("vector", 2, [9_000] * 4)

    run = run_of(graph, GUARD, groups=2, threads=2)

    order: dict[int, list[str]] = {0: [], 1: []}
    for part in run.parts:
        order[part.thread].append(part.task.name)
    assert order == {0: ["cube", "vector", "vector"], 1: ["vector", "vector", "cube"]}


def test_while_a_mix_is_left_over_no_other_work_is_dispatched() -> None:
    graph = TaskGraph()
    graph.submit("mix", 3, [9_000] * 2)
    graph.submit("vector", 4, [9_000])

    run = run_of(graph, GUARD, groups=1, threads=1)

    _, last = {part.block: part for part in parts_named(run, "mix")}.values()
    (vector,) = parts_named(run, "vector")
    assert vector.dispatch_ns > last.dispatch_ns


def test_a_mix_that_finds_no_group_goes_to_the_tail_of_its_queue() -> None:
    device, graph = Device(1, 1), TaskGraph()
    first = graph.submit("first", 7, [9_000] * 2)
    second = graph.submit("second", 7, [9_000])
    loop, run = EventLoop(), Run(0)
    queues = ReadyQueues(loop, run)
    placement = Placement(device, GUARD, DecisionLog(device, GUARD, loop, run), queues)
    queues.put(first, "MIX")
    queues.put(second, "MIX")

    parts = placement.mix(device.threads[0], is_pending=False)

    assert [(part.task, part.block, part.core.id) for part in parts] == [
        (first, 0, 0), (first, 0, 1), (first, 0, 2),
    ]  # fmt: skip
    assert list(placement.ready["MIX"]) == [second, first]
    assert placement.mix(device.threads[0], is_pending=False) == []
    assert list(placement.ready["MIX"]) == [first, second]


def test_an_all_or_nothing_task_stops_the_world_until_it_fits() -> None:
    graph = TaskGraph()
    graph.submit("vector", 2, [9_000])
    graph.submit("long", 4, [40_000])
    head = graph.submit("head", 1, [1_000], writes=[whole("x")])
    graph.submit("sync", 7, [9_000] * 2, reads=[whole("x")], is_sync_start=True)
    graph.submit("behind", 2, [9_000], reads=[whole("x")])

    run = run_of(graph, GUARD, groups=2, threads=1)

    (behind,) = parts_named(run, "behind")
    (long,) = parts_named(run, "long")
    sync = parts_named(run, "sync")
    assert {part.dispatch_ns for part in sync} == {sync[0].dispatch_ns}
    assert head.retired_ns < long.end_ns < sync[0].dispatch_ns < behind.dispatch_ns


def test_blocks_are_not_made_pending_while_another_thread_has_an_idle_core() -> None:
    graph = TaskGraph()
    graph.submit("cube", 1, [9_000] * 3)

    run = run_of(graph, GUARD, groups=3, threads=3)

    assert {part.slot for part in run.parts} == {"running"}
    assert {part.thread for part in run.parts} == {0, 1, 2}


def test_a_dummy_and_a_predicated_off_task_retire_without_a_core() -> None:
    graph = TaskGraph()
    dummy = graph.submit("dummy", 0, [1], writes=[whole("x")])
    off = graph.submit("off", 7, [1], reads=[whole("x")], enabled=False)

    run = run_of(graph, GUARD)

    assert run.parts == []
    assert (dummy.outcome, off.outcome) == ("dummy", "skipped")
    assert dummy.retired_ns <= off.ready_ns < off.retired_ns


def test_a_graph_begins_when_it_is_told_to() -> None:
    graph = TaskGraph()
    graph.submit("lone", 1, [10_000])

    run = Dispatcher(Device(1, 1), GUARD, start_ns=5_000_000).run(graph)

    assert run.parts[0].dispatch_ns == 5_000_000 + 115 + 140


def test_an_empty_graph_takes_no_time() -> None:
    run = run_of(TaskGraph(), GUARD)

    assert (run.start_ns, run.end_ns, run.stall) == (0, 0, None)
