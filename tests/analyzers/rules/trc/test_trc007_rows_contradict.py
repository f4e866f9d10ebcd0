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


def finished(edit: Callable[[list[Row], list[Row]], None], **cause: str) -> list[str]:
    """What is found of twenty requests of five tokens each, after an edit of outputs and events."""
    names = [f"r{n:02}" for n in range(20)]
    tokens = [
        {"step": n, "ts_ns": 10 * n + 9, "request": name, "position": n}
        for name in names
        for n in range(5)
    ]
    life = [event(name, "arrive", 0) for name in names]
    life += [event(name, "finish", 60, num_generated=5, **cause) for name in names]
    edit(tokens, life)
    trace = trace_of(outputs=tokens, lifecycle=life)
    return [found.message for found in RowsContradict().check(trace)]


def without_the_last(tokens: list[Row], _: list[Row]) -> None:
    del tokens[-1]


def without_any(tokens: list[Row], _: list[Row]) -> None:
    del tokens[-5:]


def twice(tokens: list[Row], _: list[Row]) -> None:
    tokens.append(dict(tokens[-2]))


def finished_early(_: list[Row], life: list[Row]) -> None:
    life[-1]["num_generated"] = 2


@looped(
    ("edit", "line"),
    [
        (without_the_last, "r19 finished with 5 tokens generated, and has outputs of 4"),
        (without_any, "r19 finished with 5 tokens generated, and has outputs of 0"),
        (finished_early, "r19 finished with 2 tokens generated, and has outputs of 5"),
        (twice, "token 3 of r19 has 2 outputs"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_outputs_that_contradict_the_end_of_a_request_are_found(
    edit: Callable[[list[Row], list[Row]], None], line: str
) -> None:
    assert finished(edit, cause="length_capped") == [line]


def aborted(tokens: list[Row], life: list[Row]) -> None:
    without_the_last(tokens, life)
    life[-1]["event"] = "abort"


def of_some_requests(tokens: list[Row], _: list[Row]) -> None:
    tokens[:] = [row for row in tokens if row["request"] < "r15"]


def without_the_last_of_all(tokens: list[Row], _: list[Row]) -> None:
    tokens[:] = [row for row in tokens if row["position"] < 4]


def there_before(tokens: list[Row], life: list[Row]) -> None:
    del tokens[-5:], life[19]


def placeholder(tokens: list[Row], _: list[Row]) -> None:
    tokens.append(tokens[-2] | {"is_placeholder": True})


def several_samples(tokens: list[Row], _: list[Row]) -> None:
    tokens += [dict(row) for row in tokens[-5:]]


def stop_string(_: list[Row], life: list[Row]) -> None:
    life[-1] |= {"num_generated": 1, "cause": "stopped"}


@looped(
    "edit",
    [aborted, of_some_requests, without_the_last_of_all, there_before, placeholder,
     several_samples, stop_string],
    ids=lambda edit: edit.__name__,
)  # fmt: skip
def test_outputs_that_engines_leave_out_or_sample_ahead_are_no_contradiction(
    edit: Callable[[list[Row], list[Row]], None],
) -> None:
    assert finished(edit, cause="length_capped") == []


def crowd() -> Tables:
    """Twelve requests of eight decodes each, all in one batch of a step."""
    names = [f"r{n:02}" for n in range(12)]
    steps = [
        {"step": n, "kind": "decode", "ts_ns": 10 * n, "dur_ns": 9, "num_running": 12,
         "num_waiting": 0, "kv_blocks_free": 3, "num_prefill_tokens": 0, "num_decode_tokens": 12}
        for n in range(1, 15)
    ]  # fmt: skip
    rows = [
        {"step": n, "ts_ns": 10 * n, "request": name, "phase": "decode", "num_tokens": 1,
         "num_computed": 100 + n}
        for n in range(1, 15)
        for name in names
    ]  # fmt: skip
    life = [
        event(name, what, ts_ns)
        for name in names
        for what, ts_ns in (("arrive", 2), ("admit", 4), ("first-token", 19), ("finish", 149))
    ]
    return {"steps": steps, "batch_rows": rows, "lifecycle": life}


def of_crowd(tables: Tables) -> list[str]:
    given: Any = tables
    return [found.message for found in RowsContradict().check(trace_of(**given))]


def negative(tables: Tables) -> None:
    tables["steps"][5]["num_waiting"] = -1


def negative_duration(tables: Tables) -> None:
    tables["steps"][5]["dur_ns"] = -4


def step_twice(tables: Tables) -> None:
    tables["steps"].append(dict(tables["steps"][5]))


def none_running(tables: Tables) -> None:
    tables["steps"][5]["num_running"] = 0


def token_before_arrival(tables: Tables) -> None:
    tables["lifecycle"][2]["ts_ns"] = 1


def finish_twice(tables: Tables) -> None:
    tables["lifecycle"].append(event("r00", "finish", 150))


def without_admit(tables: Tables) -> None:
    del tables["lifecycle"][1]


def without_admit_then_preempted(tables: Tables) -> None:
    without_admit(tables)
    tables["lifecycle"] += [event("r00", "preempt", 45, step=4), event("r00", "resume", 50, step=5)]


def back(tables: Tables, num: int = 9) -> None:
    for row in tables["batch_rows"]:
        if row["request"] == "r00" and row["step"] >= 9:
            row["num_computed"] -= num


@looped(
    ("edit", "line"),
    [
        (negative, "num_waiting is -1 in step 6, and cannot be less than 0 (in 1 of the steps)"),
        (negative_duration,
         "dur_ns is -4 in step 6, and cannot be less than 0 (in 1 of the steps)"),
        (step_twice, "step 6 is there 2 times"),
        (none_running, "no request runs in step 6, and 12 of its batch are decoded further"),
        (token_before_arrival, "r00 had its first token before it arrived"),
        (finish_twice, "r00 finished 2 times, and arrived once"),
        (without_admit, "r00 is in the batch of step 1, and was never admitted"),
        (without_admit_then_preempted, "r00 is in the batch of step 1, and was never admitted"),
        (back, "r00 has 100 tokens computed in step 9, had 109 before, and was not preempted"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_what_no_engine_does_is_found(edit: Callable[[Tables], None], line: str) -> None:
    tables = crowd()
    assert of_crowd(tables) == []

    edit(tables)

    assert of_crowd(tables) == [line]


def back_to_a_border(tables: Tables) -> None:
    back(tables, 5)


def back_by_a_draft(tables: Tables) -> None:
    back(tables)
    tables["batch_rows"][84]["num_draft"] = 4


def back_by_a_preemption(tables: Tables) -> None:
    back(tables)
    tables["lifecycle"] += [event("r00", "preempt", 85), event("r00", "resume", 88)]


def back_by_the_last_token(tables: Tables) -> None:
    back(tables, 1)


def used_again(tables: Tables) -> None:
    tables["lifecycle"] += [
        event("r00", what, ts_ns) for what, ts_ns in (("arrive", 150), ("finish", 159))
    ]


def there_before_it(tables: Tables) -> None:
    del tables["lifecycle"][:2]


def abort_after_the_end(tables: Tables) -> None:
    tables["lifecycle"].append(event("r00", "abort", 150))


def without_any_admit(tables: Tables) -> None:
    tables["lifecycle"] = [row for row in tables["lifecycle"] if row["event"] != "admit"]


def restarted(tables: Tables) -> None:
    tables["steps"].append(tables["steps"][5] | {"ts_ns": 200, "kind": "dummy"})


def none_counted(tables: Tables) -> None:
    for row in tables["steps"]:
        row["num_running"] = 0


@looped(
    "edit",
    [back_to_a_border, back_by_a_draft, back_by_a_preemption, back_by_the_last_token, used_again,
     there_before_it, abort_after_the_end, without_any_admit, restarted, none_counted],
    ids=lambda edit: edit.__name__,
)  # fmt: skip
def test_what_an_engine_may_do_is_not_found(edit: Callable[[Tables], None]) -> None:
    tables = crowd()

    edit(tables)

    assert of_crowd(tables) == []


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


def test_a_request_that_lost_its_blocks_before_it_ran_is_let_in_by_being_resumed() -> None:
    tables = crowd()
    without_admit(tables)
    tables["lifecycle"] += [event("r00", "preempt", 5, step=1), event("r00", "resume", 10, step=1)]

    assert of_crowd(tables) == []
