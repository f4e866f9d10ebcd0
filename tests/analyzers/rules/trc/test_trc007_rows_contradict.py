"""TRC007: rows of a recording say what cannot both be so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.rules.trc.trc007_rows_contradict import RowsContradict
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row, event
from tests.looped import looped
from tests.traces import trace_of

Tables = dict[str, list[Row]]


def recorded() -> Tables:
    """Two requests in ten steps: q runs throughout, r in the first five."""
    steps = [
        {"step": n, "kind": "decode", "ts_ns": 10 * n, "dur_ns": 9, "kv_blocks_free": 3,
         "kv_blocks_total": 8}
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
    return {"steps": steps, "batch_rows": rows, "outputs": tokens, "lifecycle": life}


def ghost(tables: Tables) -> None:
    again = {"step": 8, "ts_ns": 80, "request": "r", "phase": "decode", "num_tokens": 1}
    tables["batch_rows"].append(again)


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


@looped(
    ("edit", "step"),
    [(ghost, 8), (lost_token, 5), (jump, 6), (lost_step, 6), (more_free_than_there_are, 7)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_an_edited_recording_is_noticed_where_it_was_edited(
    edit: Callable[[Tables], None], step: int
) -> None:
    tables: Any = recorded()
    assert RowsContradict().check(trace_of(**tables)) == []

    edit(tables)

    assert [found.step for found in RowsContradict().check(trace_of(**tables))] == [step]


def scheduled_ahead(tables: Tables) -> None:
    tables["batch_rows"].append(
        {"step": 5, "ts_ns": 50, "request": "r", "phase": "decode", "num_tokens": 1}
    )


def preempted(tables: Tables) -> None:
    jump(tables)
    tables["lifecycle"] += [event("q", "preempt", 55), event("q", "resume", 58)]


def started_in_the_middle(tables: Tables) -> None:
    del tables["outputs"][:4]


@looped("edit", [scheduled_ahead, preempted, started_in_the_middle], ids=lambda edit: edit.__name__)
def test_what_engines_do_is_no_contradiction(edit: Callable[[Tables], None]) -> None:
    tables: Any = recorded()

    edit(tables)

    assert RowsContradict().check(trace_of(**tables)) == []


@pytest.mark.parametrize("status", ["partial", "inferred"])
def test_a_recording_with_missing_rows_is_not_judged(status: str) -> None:
    tables: Any = recorded()
    lost_token(tables)
    lost_step(tables)

    trace = trace_of(**tables, tables=dict.fromkeys(tables, status))

    assert check(trace, (RowsContradict(),)).not_applicable == ("TRC007",)


@pytest.mark.parametrize("name", ["fcfs-preemption", "waiting-queue"])
def test_runs_of_the_reference_engine_do_not_contradict_themselves(
    record: Record, name: str
) -> None:
    assert RowsContradict().check(record(name)) == []
