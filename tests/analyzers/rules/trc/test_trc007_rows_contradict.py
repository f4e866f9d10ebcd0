"""TRC007: rows of a recording say what cannot both be so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.rules.trc.trc007_rows_contradict import RowsContradict
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row, event
from tests.analyzers.serving_rows import owned
from tests.looped import looped
from tests.traces import trace_of

Tables = dict[str, list[Row]]
SIZED: dict[str, Any] = {"config": {"engine": {"block_size": 6}}}
"""Three blocks of six tokens hold the 17 that `q` comes to."""


def recorded() -> Tables:
    """Two requests in ten steps: q runs throughout, r in the first five."""
    steps = [
        {"step": n, "kind": "decode", "ts_ns": 10 * n, "dur_ns": 9, "kv_blocks_free": 3,
         "kv_blocks_total": 8, "num_prefill_tokens": 0, "num_decode_tokens": 1 + (n < 5)}
        for n in range(10)
    ]  # fmt: skip
    rows = [
        {"step": n, "ts_ns": 10 * n, "request": request, "phase": "decode", "num_tokens": 1,
         "num_computed": 7 + n}
        for n in range(10)
        for request in ("q", *(["r"] if n < 5 else []))
    ]  # fmt: skip
    tokens = [
        {"step": n, "ts_ns": 10 * n + 9, "request": "q", "position": n, "token": n}
        for n in range(10)
    ]
    life = [
        event("q", "arrive", 0), event("q", "admit", 1), event("r", "arrive", 0),
        event("r", "admit", 1), event("r", "finish", 49), event("q", "finish", 99),
    ]  # fmt: skip
    changes = [
        *(owned("claim", n, "q", 1) for n in (1, 2, 3)), owned("claim", 4, "r", 1),
        owned("release", 4, "r", 49), *(owned("release", n, "q", 99) for n in (1, 2, 3)),
    ]  # fmt: skip
    return {
        "steps": steps, "batch_rows": rows, "outputs": tokens, "lifecycle": life,
        "allocations": changes,
    }  # fmt: skip


def ghost(tables: Tables) -> None:
    again = {"step": 8, "ts_ns": 80, "request": "r", "phase": "decode", "num_tokens": 1}
    tables["batch_rows"].append({**again, "num_computed": 12})


def lost_token(tables: Tables) -> None:
    del tables["outputs"][4]


def jump(tables: Tables) -> None:
    for row in tables["batch_rows"]:
        if row["request"] == "q" and row["step"] >= 6:
            row["num_computed"] += 100


def lost_step(tables: Tables) -> None:
    del tables["steps"][6]


def more_free_than_there_are(tables: Tables) -> None:
    tables["steps"][7]["kv_blocks_free"] = 9


def release(tables: Tables, block: int, ts_ns: int) -> None:
    """`q` releases a block at another time."""
    for row in tables["allocations"]:
        if (row["op"], row["id"]) == ("release", block):
            row |= {"ts_ns": ts_ns, "step": ts_ns // 10}


def released_while_it_runs(tables: Tables) -> None:
    release(tables, 2, 33)


def oldest_released_while_it_runs(tables: Tables) -> None:
    release(tables, 1, 33)


def released_twice(tables: Tables) -> None:
    tables["allocations"].append(owned("release", 4, "r", 61, step=6))


def lost_row(tables: Tables) -> None:
    tables["batch_rows"] = [
        row for row in tables["batch_rows"] if (row["step"], row["request"]) != (4, "r")
    ]


@looped(
    ("edit", "step"),
    [
        (ghost, 8),
        (lost_token, 5),
        (jump, 6),
        (lost_step, 6),
        (more_free_than_there_are, 7),
        (released_while_it_runs, 3),
        (oldest_released_while_it_runs, 3),
        (released_twice, 6),
        (lost_row, 4),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_an_edited_recording_is_noticed_where_it_was_edited(
    edit: Callable[[Tables], None], step: int
) -> None:
    tables: Any = recorded()
    assert RowsContradict().check(trace_of(**tables, **SIZED)) == []

    edit(tables)

    assert [found.step for found in RowsContradict().check(trace_of(**tables, **SIZED))] == [step]


def scheduled_ahead(tables: Tables) -> None:
    tables["batch_rows"].append(
        {"step": 5, "ts_ns": 50, "request": "r", "phase": "decode", "num_tokens": 1,
         "num_computed": 12}
    )  # fmt: skip
    tables["steps"][5]["num_decode_tokens"] += 1


def preempted(tables: Tables) -> None:
    jump(tables)
    tables["lifecycle"] += [event("q", "preempt", 55), event("q", "resume", 58)]


def started_in_the_middle(tables: Tables) -> None:
    del tables["outputs"][:4]


def preempted_with_its_block(tables: Tables) -> None:
    release(tables, 2, 33)
    tables["lifecycle"] += [event("q", "preempt", 33), event("q", "resume", 38)]


def window(tables: Tables) -> None:
    for block, ts_ns in ((1, 23), (2, 43), (3, 63)):
        release(tables, block, ts_ns)


def more_than_it_needs(tables: Tables) -> None:
    tables["allocations"] += [owned("claim", 7, "q", 2), owned("release", 7, "q", 33, step=3)]


@looped(
    "edit",
    [scheduled_ahead, preempted, started_in_the_middle, preempted_with_its_block, window,
     more_than_it_needs],
    ids=lambda edit: edit.__name__,
)  # fmt: skip
def test_what_engines_do_is_no_contradiction(edit: Callable[[Tables], None]) -> None:
    tables: Any = recorded()

    edit(tables)

    assert RowsContradict().check(trace_of(**tables, **SIZED)) == []


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


@pytest.mark.parametrize("status", ["partial", "inferred"])
def test_a_recording_with_missing_rows_is_not_judged(status: str) -> None:
    tables: Any = recorded()
    lost_token(tables)
    lost_step(tables)

    trace = trace_of(**tables, tables=dict.fromkeys(tables, status))

    assert check(trace, (RowsContradict(),)).not_applicable == ("TRC007",)


@looped(
    ("table", "column", "line"),
    [
        ("steps", "kind", "steps.kind is missing in 4 of 10 rows"),
        ("steps", "kv_blocks_free", "steps.kv_blocks_free is missing in 4 of 10 rows"),
        ("outputs", "ts_ns", "outputs.ts_ns is missing in 4 of 10 rows"),
    ],
)
def test_a_value_that_a_recorder_writes_in_every_row_is_missed(
    table: str, column: str, line: str
) -> None:
    tables: Any = recorded()
    for row in tables[table][3:7]:
        row[column] = None

    assert [found.message for found in RowsContradict().check(trace_of(**tables))] == [line]


def test_a_column_that_was_never_recorded_is_not_missed() -> None:
    tables: Any = recorded()
    for row in tables["steps"]:
        row["kv_blocks_free"] = None

    assert RowsContradict().check(trace_of(**tables)) == []


@pytest.mark.parametrize("name", ["fcfs-preemption", "waiting-queue"])
def test_runs_of_the_reference_engine_do_not_contradict_themselves(
    record: Record, name: str
) -> None:
    assert RowsContradict().check(record(name)) == []


def test_more_contradictions_than_are_listed_are_counted() -> None:
    tables: Any = recorded()
    for row in tables["steps"]:
        row["num_decode_tokens"] += 1

    found = RowsContradict(limit=3).check(trace_of(**tables, **SIZED))

    assert [each.count for each in found] == [1, 1, 1, 7]
