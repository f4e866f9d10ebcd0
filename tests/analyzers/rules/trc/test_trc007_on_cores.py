"""TRC007 on core groups: tasks and blocks that contradict each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stepscope.analyzers.rules.trc.trc007_rows_contradict import RowsContradict
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row
from tests.traces import trace_of

Tables = dict[str, list[Row]]


def of_tasks(edit: Callable[[Tables], None], state: str = "complete") -> list[str]:
    """What is found of a recording of twelve tasks in a row, each with a block, after an edit."""
    names = range(1, 13)
    tables: Any = {
        "tasks": [
            {"ts_ns": task, "task": task, "name": f"t{task}", "shape": "AIV", "core_mask": 2,
             "num_blocks": 1, "outcome": "run"}
            for task in names
        ],
        "core_spans": [span(task, "AIV0", 1, 10 * task) | {"shape": "AIV"} for task in names],
    }  # fmt: skip
    edit(tables)
    trace = trace_of(**tables, tables={"tasks": state, "core_spans": "complete"})
    return [found.message for found in RowsContradict().check(trace)]


def skipped(tables: Tables) -> None:
    tables["tasks"][5]["outcome"] = "skipped"


def without_its_row(tables: Tables) -> None:
    del tables["tasks"][5]


def without_the_first(tables: Tables) -> None:
    del tables["tasks"][0]


def test_blocks_of_a_task_that_did_not_run_or_is_not_there_are_found() -> None:
    assert of_tasks(skipped) == ["task t6 (6) was skipped, and has blocks on cores: 1"]
    assert of_tasks(without_its_row) == ["task 6 has no row, and has blocks on cores: 1"]


def test_a_task_of_which_rows_may_be_missing_is_no_contradiction() -> None:
    assert of_tasks(without_the_first) == []
    assert of_tasks(without_its_row, "partial") == []


def graph() -> Tables:
    """A MIX on three cores, a vector task that waits for it, and one that waits for that."""
    tasks = [
        {"ts_ns": 0, "task": 1, "name": "mix", "shape": "MIX", "core_mask": 7, "num_blocks": 1},
        {"ts_ns": 0, "task": 2, "name": "act", "shape": "AIV", "core_mask": 2, "num_blocks": 1},
        {"ts_ns": 0, "task": 3, "name": "add", "shape": "AIV", "core_mask": 2, "num_blocks": 1},
    ]  # fmt: skip
    parts = [("AIC", 0), ("AIV0", 1), ("AIV1", 2)]
    spans = [span(1, kind, core, 10) for kind, core in parts]
    spans += [span(task, "AIV0", 1, 10 * task) for task in (2, 3)]
    for task in tasks:
        task["outcome"] = "run"
    edges = [{"ts_ns": 0, "from_task": task, "to_task": task + 1} for task in (1, 2)]
    return {"tasks": tasks, "core_spans": spans, "task_edges": edges}


def span(task: int, kind: str, core: int, ts_ns: int) -> Row:
    shape = "MIX" if task == 1 else "AIV"
    return {
        "ts_ns": ts_ns, "end_ns": ts_ns + 9, "task": task, "block": 0, "core": core, "group": 0,
        "core_kind": kind, "shape": shape,
    }  # fmt: skip


def of_graph(tables: Tables, state: str = "inferred") -> list[str]:
    given: Any = tables
    trace = trace_of(**given, tables={"tasks": "complete", "core_spans": state})
    return [found.message for found in RowsContradict().check(trace)]


def test_a_task_without_a_block_whose_successors_ran_is_found() -> None:
    tables = graph()
    assert of_graph(tables) == []

    tables["core_spans"] = [row for row in tables["core_spans"] if row["task"] != 2]

    assert of_graph(tables) == [
        "task act (2) has no block on any core, but 1 of the tasks that depend on it ran, such as "
        "add (3)"
    ]
    for outcome in ("skipped", "dummy"):
        tables["tasks"][1]["outcome"] = outcome
        assert of_graph(tables) == []


def test_the_last_tasks_of_a_graph_that_was_stopped_are_no_contradiction() -> None:
    tables = graph()
    tables["core_spans"] = [row for row in tables["core_spans"] if row["task"] == 1]

    assert of_graph(tables) == []


def test_a_part_of_a_mix_that_never_started_is_found_when_all_others_ended() -> None:
    tables = graph()
    tables["core_spans"] = [row for row in tables["core_spans"] if row["core_kind"] != "AIC"]

    assert of_graph(tables) == [
        "block 0 of MIX task mix (1) ran on AIV0 and AIV1 to its end, but its part on AIC never "
        "started"
    ]
    assert of_graph(tables, "partial") == []
    tables["core_spans"][0]["end_ns"] = None
    assert of_graph(tables) == []


@pytest.mark.parametrize("variant", ["before", "after", "reserve-group"])
def test_the_device_does_not_contradict_itself(record: Record, variant: str) -> None:
    assert RowsContradict().check(record("mix-admission", variant)) == []
