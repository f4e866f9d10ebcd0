"""Why a request was left out: the recorded reason that still holds, or that there is none."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.app.debug import LeftOut, Session, State, changes_between
from stepscope.app.debug.engine_state import CoreSlots
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.traces import trace_of


def decision(step: int, subject: str, verdict: str, reason: str, **more: Any) -> dict[str, Any]:
    return {
        "step": step, "ts_ns": 10 * step, "subject_kind": "request", "subject": subject,
        "verdict": verdict, "reason": reason, **more,
    }  # fmt: skip


def event(step: int, request: str, what: str, index: int | None = None) -> dict[str, Any]:
    return {
        "step": step, "ts_ns": 10 * step, "request": request, "event": what, "queue_index": index,
    }  # fmt: skip


def a_trace() -> Trace:
    """`a` runs; `b` is short of blocks, is admitted, runs, and is preempted in step 4."""
    return trace_of(
        steps=[
            {
                "step": n, "ts_ns": 10 * n, "dur_ns": 10, "kind": "decode", "num_decode_reqs": 1,
                "num_decode_tokens": 1, "token_budget": 8, "kv_blocks_free": 2,
                "kv_blocks_total": 9,
            }
            for n in range(1, 6)
        ],
        lifecycle=[
            event(1, "a", "arrive", 0), event(1, "a", "admit"), event(1, "b", "arrive", 0),
            event(1, "q", "arrive", 1), event(3, "b", "admit"), event(4, "b", "preempt", 0),
        ],
        batch_rows=[
            {"step": n, "ts_ns": 10 * n, "row": 0, "request": "a", "phase": "decode",
             "num_tokens": 1, "num_computed": n, "prompt_len": 4}
            for n in range(1, 6)
        ],
        decisions=[
            decision(1, "b", "deferred", "too few blocks", resource="kv-block", needed=3,
                     available=1, holder="a"),
            decision(3, "b", "admitted", "fits"),
            decision(3, "len=4", "chosen", "oldest", subject_kind="bucket", holder="a"),
            decision(4, "b", "preempted", "another bucket runs", instead="len=4", holder="a"),
            decision(5, "z", "rejected", "too long"),
        ],
    )  # fmt: skip


def session_at(step: int) -> Session:
    session = Session(a_trace())
    session.goto(step=step)
    return session


def test_a_reason_holds_until_something_else_is_decided() -> None:
    left = session_at(2).left_out()

    expected = LeftOut(
        "b", "deferred", "too few blocks", "kv-block", 3, 1, "a", None, ts_ns=10, step=1
    )
    assert left == [expected, LeftOut("q")]


def test_a_running_request_that_is_not_in_the_batch_is_left_out_without_an_old_reason() -> None:
    left = session_at(3).left_out()

    assert left == [LeftOut("q"), LeftOut("b", is_running=True)]


def test_the_reason_for_waiting_does_not_hold_any_more_once_it_runs() -> None:
    trace = trace_of(
        steps=[{"step": n, "ts_ns": 10 * n, "dur_ns": 9, "kind": "idle"} for n in (1, 2)],
        lifecycle=[event(1, "s", "arrive", 0), event(2, "s", "admit")],
        decisions=[decision(1, "s", "deferred", "too few blocks")],
    )
    session = Session(trace)

    waiting = session.left_out()
    session.next()

    assert [left.reason for left in waiting] == ["too few blocks"]
    assert session.left_out() == [LeftOut("s", is_running=True)]


def test_the_reason_of_the_preemption_is_that_of_waiting_again() -> None:
    (first, second) = session_at(5).left_out()

    assert (first.request, first.verdict, first.reason) == ("b", "preempted", "another bucket runs")
    assert second == LeftOut("q")


def test_why_tells_what_was_decided_so_far_the_last_first() -> None:
    reasons = [left.reason for left in session_at(4).why("b")]

    assert reasons == ["another bucket runs", "fits", "too few blocks"]
    assert [left.reason for left in session_at(2).why("b")] == ["too few blocks"]


def test_why_of_a_request_without_decisions_is_empty_and_of_a_stranger_an_error() -> None:
    session = session_at(1)

    assert session.why("q") == []
    with pytest.raises(ConfigError, match="no request 'Q'"):
        session.why("Q")


def test_the_detail_prints_the_step_the_batch_what_changed_and_who_was_left_out() -> None:
    tables = {table.title: table for table in session_at(4).detail().tables()}

    header = {row[0]: row[1] for row in tables["step"].rows}
    assert header["tokens"] == "1 decode, prefill unknown, budget 8"
    assert header["KV blocks free"] == "2 of 9"
    assert tables["batch"].rows == (("0", "a", "decode", "1", "4", "4"),)
    assert tables["changed"].rows == (("waiting", "1", "2  +b"), ("running", "2", "1  -b"))
    left = [
        dict(zip(tables["left out"].columns, row, strict=True)) for row in tables["left out"].rows
    ]
    assert [(row["request"], row["reason"]) for row in left] == [
        ("b", "another bucket runs"),
        ("q", "no reason recorded"),
    ]


def test_the_detail_shows_which_bucket_was_chosen_and_what_the_core_groups_ran() -> None:
    block = {"step": 1, "block": 0, "shape": "AIV", "group": 0}
    trace = trace_of(
        steps=[{"step": 1, "ts_ns": 0, "dur_ns": 2_000_000, "kind": "decode"}],
        core_spans=[
            {**block, "task": 1, "core": 1, "ts_ns": 0, "end_ns": 1_500_000},
            {**block, "task": 1, "core": 2, "ts_ns": 0, "end_ns": 500_000},
        ],
        decisions=[decision(1, "len=4", "chosen", "oldest", subject_kind="bucket")],
    )

    tables = {table.title: table for table in Session(trace).detail().tables()}

    assert tables["buckets"].rows[0][:3] == ("len=4", "chosen", "oldest")
    assert tables["core groups"].rows == (("AIV", "1", "1", "2", "2.00 ms"),)


def test_text_of_the_trace_cannot_steer_who_prints_the_detail() -> None:
    hostile = "\x1b]0;owned\x07\n"
    trace = trace_of(
        steps=[
            {"step": 1, "kind": "decode", "dur_ns": 1, "tag": hostile, "executed_path": hostile}
        ],
        batch_rows=[{"step": 1, "request": hostile, "phase": "decode", "num_tokens": 1}],
        lifecycle=[{"step": 1, "request": hostile, "event": "arrive"}],
        decisions=[decision(0, hostile, "deferred", hostile, holder=hostile, instead=hostile)],
    )

    tables = Session(trace).detail().tables()

    texts = [str(text) for table in tables for row in table.rows for text in row]
    assert all(text.isprintable() for text in texts)
    assert "·]0;owned··" in texts


def test_long_lists_are_cut_and_say_how_many_more_there_are() -> None:
    trace = trace_of(
        steps=[{"step": 1, "ts_ns": 900, "kind": "idle", "dur_ns": 1}],
        lifecycle=[{"step": 1, "request": f"r{n}", "event": "arrive"} for n in range(250)],
    )

    tables = {table.title: table for table in Session(trace).detail().tables()}

    assert len(tables["left out"].rows) == 200
    assert tables["left out"].num_more == 50


def test_changes_name_who_came_and_went_and_each_core() -> None:
    before = State(
        0, 1, waiting=("a", "b"), running=("c",), kv_blocks={1: "c"}, cores={0: CoreSlots()}
    )
    after = State(
        9, 2, waiting=("b",), running=("c", "a"), kv_blocks={1: "a", 2: "c"},
        cores={0: CoreSlots((4, 1), (5, 0), "running")},
    )  # fmt: skip

    changes = [(c.what, c.before, c.after) for c in changes_between(before, after)]

    assert changes == [
        ("waiting", "2", "1  -a"),
        ("running", "1", "2  +a"),
        ("KV blocks held", "1", "2  (2 changed hands)"),
        ("core 0", "idle", "task 4 1, then task 5 0"),
    ]
    assert changes_between(after, after) == []
