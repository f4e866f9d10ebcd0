"""A session stands behind any change of a rank, in the order in which changes were told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepscope.app.debug import Session, formed
from stepscope.app.debug.moments import Position
from stepscope.ingest.derive.order import Order
from stepscope.ingest.trace import Trace
from tests.looped import looped
from tests.traces import trace_of

ROW = {"phase": "decode", "num_tokens": 1}


def event(seq: int, what: str, request: str, ts_ns: int, step: int, **more: Any) -> dict[str, Any]:
    return {
        "seq": seq, "step": step, "ts_ns": ts_ns, "request": request, "event": what, **more,
    }  # fmt: skip


def a_trace(**step: Any) -> Trace:
    """Two steps; `a` ends in the first at the moment at which the second is formed with `b`."""
    return trace_of(
        steps=[
            {"step": 1, "ts_ns": 10, "dur_ns": 20, "kind": "decode", "seq": 5, **step},
            {"step": 2, "ts_ns": 30, "dur_ns": 20, "kind": "decode", "seq": 10},
        ],
        lifecycle=[
            event(1, "arrive", "a", 0, 1, queue_index=0),
            event(3, "admit", "a", 10, 1),
            event(6, "arrive", "b", 12, 1, queue_index=0),
            event(7, "finish", "a", 30, 1),
            event(8, "admit", "b", 30, 2),
        ],
        allocations=[
            {"seq": 2, "step": 1, "ts_ns": 10, "resource": "kv-block", "id": 4, "op": "claim",
             "owner": "a"},
        ],
        batch_rows=[
            {**ROW, "seq": 4, "step": 1, "ts_ns": 10, "row": 0, "request": "a"},
            {**ROW, "seq": 9, "step": 2, "ts_ns": 30, "row": 0, "request": "b"},
        ],
    )  # fmt: skip


def queues(session: Session) -> tuple[Any, Any]:
    return session.state.waiting, session.state.running


def test_a_step_is_stood_at_behind_all_that_was_decided_for_it() -> None:
    session = Session(a_trace())

    assert session.position == Position(0, 1, 5, 10)
    assert session.next()
    assert session.position == Position(0, 2, 10, 30)
    assert queues(session) == ((), ("b",))


def test_change_by_change_each_row_is_one_stop_and_the_step_is_the_last_that_was_formed() -> None:
    session = Session(a_trace())
    session.goto(seq=1)

    seen = [session.position]
    while session.next("seq"):
        seen.append(session.position)
    back = [session.position]
    while session.back("seq"):
        back.append(session.position)

    assert [position.seq for position in seen] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert [position.step for position in seen] == [None] * 4 + [1] * 5 + [2]
    assert [position.ts_ns for position in seen] == [0, 10, 10, 10, 10, 12, 30, 30, 30, 30]
    assert back == seen[::-1]


def test_of_one_moment_every_change_has_a_state_of_its_own() -> None:
    session = Session(a_trace())

    states = []
    for seq in (6, 7, 8):
        session.goto(seq=seq)
        states.append(queues(session))

    assert states == [(("b",), ("a",)), (("b",), ()), ((), ("b",))]


def test_a_step_back_from_within_a_step_goes_to_where_that_was_formed() -> None:
    session = Session(a_trace())
    session.goto(seq=7)

    assert session.back()
    assert session.position == Position(0, 1, 5, 10)


def test_a_seq_that_no_row_bears_is_the_last_before_it() -> None:
    session = Session(a_trace())

    reached = []
    for seq in (-5, 0, 11, 99):
        session.goto(seq=seq)
        reached.append(session.position.seq)

    assert reached == [1, 1, 10, 10]


def test_at_a_time_all_that_was_told_by_then_has_happened() -> None:
    session = Session(a_trace())

    session.goto(ts_ns=29)
    assert session.position == Position(0, 1, 6, 29)
    session.goto(ts_ns=30)
    assert session.position == Position(0, 2, 10, 30)


@looped("block_rows", [1, 3])
def test_steps_are_formed_at_the_same_places_however_many_rows_are_looked_at_at_once(
    block_rows: int, sample_traces: Path
) -> None:
    trace = Trace.open(sample_traces / "vllm_prefixes.trace")
    expected = formed.formed_steps(Order(trace, 0))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formed, "BLOCK_ROWS", block_rows)
        assert formed.formed_steps(Order(trace, 0)).equals(expected)


def test_before_the_first_change_nothing_is_told_yet() -> None:
    session = Session(trace_of(
        steps=[{"step": 1, "ts_ns": 10, "kind": "decode", "seq": 2}],
        lifecycle=[event(1, "arrive", "a", 5, 1, queue_index=0)],
    ))  # fmt: skip

    before = session.moments.position(4)
    assert before == Position(0, None, None, 4)
    assert session.state_at(before).waiting == ()


def test_a_step_that_was_told_when_it_had_ended_was_formed_before_what_it_did() -> None:
    session = Session(a_trace(seq=7))

    assert session.position == Position(0, 1, 4, 10)


def test_of_a_step_that_took_no_time_what_followed_is_told_by_its_row() -> None:
    trace = trace_of(
        steps=[{"step": 1, "ts_ns": 10, "dur_ns": 0, "kind": "decode", "seq": 3}],
        lifecycle=[
            event(1, "admit", "a", 10, 1),
            event(4, "finish", "a", 10, 1),
        ],
        batch_rows=[{**ROW, "seq": 2, "step": 1, "ts_ns": 10, "row": 0, "request": "a"}],
    )

    session = Session(trace)

    assert session.position.seq == 3
    assert session.state.running == ("a",)


def test_what_was_decided_on_a_real_clock_belongs_to_the_step_that_it_was_decided_for() -> None:
    trace = trace_of(
        steps=[{"step": 1, "ts_ns": 16, "formed_ns": 15, "dur_ns": 9, "kind": "decode", "seq": 5}],
        lifecycle=[event(1, "admit", "a", 10, 1), event(3, "admit", "b", 12, 1)],
        batch_rows=[
            {**ROW, "seq": 2, "step": 1, "ts_ns": 11, "row": 0, "request": "a"},
            {**ROW, "seq": 4, "step": 1, "ts_ns": 13, "row": 1, "request": "b"},
        ],
    )

    session = Session(trace)

    assert session.position.ts_ns == 15
    assert session.state.running == ("a", "b")


@looped("is_counted", [True, False])
def test_a_position_and_its_time_agree_whether_the_order_was_counted_or_not(
    is_counted: bool,
) -> None:
    trace = a_trace()
    if not is_counted:
        names = ("steps", "lifecycle", "allocations", "batch_rows")
        trace = Trace.from_tables(
            {name: trace.table(name).drop("seq") for name in names}, trace.manifest
        )
    session = Session(trace)

    for step in (1, 2):
        session.goto(step=step)
        at_step = session.position
        session.goto(ts_ns=at_step.ts_ns)
        assert session.position == at_step
        assert session.moments.at_seq(at_step.seq or 0) == at_step


@looped(("closed", "steps"), [(True, [1, 2]), (False, [1])])
def test_of_steps_that_say_nothing_the_last_is_not_taken_for_formed_where_the_recording_was_cut_off(
    closed: bool, steps: list[int]
) -> None:
    rows = [
        {"seq": seq, "step": step, "ts_ns": 10 * step, "row": row, "request": f"r{row}", **ROW}
        for seq, (step, row) in enumerate([(1, 0), (1, 1), (2, 0)], 1)
    ]

    assert Session(trace_of(batch_rows=rows, closed=closed)).moments.steps == steps


def test_where_nothing_changes_one_stands_where_the_trace_begins() -> None:
    span = {"track": "GPU 0", "name": "gemm", "ts_ns": 5_000, "dur_ns": 10, "form": "slice"}

    assert Session(trace_of(spans=[span])).position == Position(0, None, None, 5_000)
