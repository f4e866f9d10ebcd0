"""Queues and threads that are put together from a record are those of the dispatcher.

For every graph, device and policy, deadlocked ones included.
"""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.app.debug.held.flat_rows import FlatRows
from stepscope.app.debug.held.ready_queues import ReadyQueues, ready_at, stays_of
from stepscope.app.debug.held.thread_phases import ThreadPhases, phases_at, phases_of
from stepscope.engine.device.admission import Admission
from stepscope.engine.device.dispatch_costs import Costs
from stepscope.engine.device.dispatcher import Dispatcher
from stepscope.engine.device.graphs.tasks import TaskGraph
from stepscope.engine.device.rings import Rings, RingSizes
from stepscope.engine.device.run_log import Run
from stepscope.engine.device.topology import Device
from stepscope.ingest.frames import polars_schema
from stepscope.ingest.schema import BY_NAME
from tests.engine.device.drawn_graphs import (
    Launch,
    graph_of,
    launches,
    num_groups,
    num_threads,
    policies,
)
from tests.traces import trace_of

NO_STEPS = pl.DataFrame(schema={"step": pl.Int64, "ts_ns": pl.Int64})
SOME_COSTS = [
    Costs(), Costs(submit_ns=874), Costs(poll_ns=0, end_block_ns=0, end_task_ns=0, dispatch_ns=0),
]  # fmt: skip


def told(graph: TaskGraph, run: Run) -> dict[str, pl.DataFrame]:
    """The rows of a run, as far as they tell of its queues and threads."""
    tasks = [
        (1, task.id, task.queue, _known(task.queued_ns), _known(task.dequeued_ns))
        for task in graph.tasks
    ]
    names = {
        "tasks": ("step", "task", "queue", "queued_ns", "dequeued_ns"),
        "ready_order": ("step", "ts_ns", "queue", "index", "task"),
        "thread_phases": ("step", "ts_ns", "thread", "phase"),
    }
    rows: dict[str, list[Any]] = {
        "tasks": tasks,
        "ready_order": [(1, *each) for each in run.listed],
        "thread_phases": [(1, *each) for each in run.phases],
    }
    return {
        table: pl.DataFrame(
            rows[table],
            {name: polars_schema(BY_NAME[table])[name] for name in columns},
            orient="row",
        )
        for table, columns in names.items()
    }


def _known(ts_ns: int) -> int | None:
    return ts_ns if ts_ns >= 0 else None


@settings(max_examples=60)
@given(launches, policies, num_groups, num_threads, st.sampled_from(SOME_COSTS), st.integers(1, 9))
def test_at_every_instant_they_are_those_of_the_dispatcher(
    given_launches: list[Launch],
    policy: Admission,
    groups: int,
    threads: int,
    costs: Costs,
    slots: int,
) -> None:
    held: dict[int, dict[str, Any]] = {}
    graph = graph_of(given_launches, groups)
    dispatcher = Dispatcher(
        Device(groups, threads), policy, costs=costs, rings=Rings(RingSizes(num_slots=slots)),
        observer=lambda now_ns: held.__setitem__(now_ns, dispatcher.snapshot()),
    )  # fmt: skip
    run = dispatcher.run(graph)
    held[run.end_ns] = dispatcher.snapshot()

    rows = told(graph, run)
    stays = stays_of(rows["tasks"], rows["ready_order"], NO_STEPS)
    queues = ReadyQueues(FlatRows.of(stays))
    phases = phases_of(rows["thread_phases"], NO_STEPS)
    doing = ThreadPhases(**{name: FlatRows.of(each) for name, each in phases.items()})
    for ts_ns, each in held.items():
        assert {name: list(tasks) for name, tasks in queues.at(ts_ns).items()} == each["ready"]
        assert {name: list(phase) for name, phase in doing.at(ts_ns).items()} == each["threads"]


TASK = {"step": 1, "shape": "MIX", "num_blocks": 1, "ts_ns": 5, "queue": "MIX"}


def turned() -> Any:
    """Three MIX in a queue, of which the first goes to the tail, and a thread that sleeps then."""
    return trace_of(
        steps=[{"step": 1, "ts_ns": 0, "kind": "decode"}],
        tasks=[
            {**TASK, "task": 1, "queued_ns": 10, "dequeued_ns": 40},
            {**TASK, "task": 2, "queued_ns": 10, "dequeued_ns": None},
            {**TASK, "task": 3, "queued_ns": 12, "dequeued_ns": 30},
        ],
        ready_order=[
            {"step": 1, "ts_ns": 20, "queue": "MIX", "index": index, "task": task}
            for index, task in enumerate((2, 3, 1))
        ],
        thread_phases=[
            {"step": 1, "ts_ns": 0, "thread": 0, "phase": "poll"},
            {"step": 1, "ts_ns": 0, "thread": None, "phase": "exit"},
            {"step": 1, "ts_ns": 20, "thread": 0, "phase": "sleep"},
        ],
    )


def test_a_queue_that_was_turned_stands_as_it_was_listed_until_tasks_leave() -> None:
    found = {ts_ns: ready_at(turned(), 0, ts_ns) for ts_ns in (9, 12, 20, 30, 40)}

    assert found == {
        9: {},
        12: {"MIX": (1, 2, 3)},
        20: {"MIX": (2, 3, 1)},
        30: {"MIX": (2, 1)},
        40: {"MIX": (2,)},
    }


def test_a_thread_does_what_its_last_row_says() -> None:
    assert phases_at(turned(), 0, -1) == {}
    assert phases_at(turned(), 0, 19) == {"thread 0": ("poll", 0), "orchestrator": ("exit", 0)}
    assert phases_at(turned(), 0, 25) == {"thread 0": ("sleep", 20), "orchestrator": ("exit", 0)}


def test_a_trace_that_does_not_tell_of_queues_or_threads_is_unknown() -> None:
    older = trace_of(tasks=[{**TASK, "task": 1, "queue": None, "ready_ns": 10, "queued_ns": 10}])

    assert ready_at(older, 0, 20) is None
    assert phases_at(older, 0, 20) is None


def test_what_a_step_brings_about_is_there_behind_the_place_where_its_batch_was_formed() -> None:
    formed = pl.DataFrame({"step": [1], "ts_ns": [10]})
    tasks = turned().tasks.select("step", "task", "queue", "queued_ns", "dequeued_ns").collect()
    listed = turned().ready_order.select("step", "ts_ns", "queue", "index", "task").collect()
    queues = ReadyQueues(FlatRows.of(stays_of(tasks, listed, formed)))

    assert queues.at(10) == {}
    assert queues.at(11) == {"MIX": (1, 2)}
