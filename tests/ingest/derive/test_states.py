"""What requests and cores are doing at a moment, by events and by blocks."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.derive.states import (
    is_list_of_arrivals,
    request_states,
    step_times,
    with_held,
)
from tests.looped import looped
from tests.traces import trace_of

BLOCK = {"task": 1, "block": 0, "shape": "AIC", "group": 0, "core": 0}


def states(*events: tuple[int, str]) -> list[tuple[int, int | None, str]]:
    rows = [{"ts_ns": at, "request": "r", "event": event} for at, event in events]
    told = request_states(trace_of(lifecycle=rows).lifecycle).collect()
    return told.select("from_ns", "to_ns", "state").rows()


def test_a_request_waits_runs_and_ends() -> None:
    assert states((0, "arrive"), (5, "admit"), (9, "finish")) == [
        (0, 5, "waiting"), (5, 9, "running"), (9, None, "ended"),
    ]  # fmt: skip


def test_a_request_is_in_the_front_end_before_it_arrives_and_until_all_is_delivered() -> None:
    told = states(
        (0, "receive"), (2, "arrive"), (5, "admit"), (7, "deliver"), (9, "finish"),
        (11, "deliver"), (14, "deliver"),
    )  # fmt: skip

    assert told == [
        (0, 2, "front-end"), (2, 5, "waiting"), (5, 7, "running"), (7, 9, "running"),
        (9, 11, "delivery"), (11, 14, "delivery"), (14, None, "ended"),
    ]  # fmt: skip


def test_what_the_client_gave_up_in_the_front_end_never_waited() -> None:
    assert states((0, "receive"), (4, "abort")) == [(0, 4, "front-end"), (4, None, "ended")]


def test_what_is_delivered_in_the_moment_of_the_end_is_delivered() -> None:
    told = states((0, "receive"), (0, "arrive"), (5, "admit"), (9, "finish"), (9, "deliver"))

    assert told == [(0, 5, "waiting"), (5, 9, "running"), (9, None, "ended")]


def test_without_an_admission_it_is_unknown_until_the_first_token() -> None:
    assert states((0, "arrive"), (5, "first-token"), (9, "finish")) == [
        (0, 5, "unknown"), (5, 9, "running"), (9, None, "ended"),
    ]  # fmt: skip


def test_a_finish_without_an_admission_says_nothing_of_a_queue() -> None:
    assert states((0, "arrive"), (9, "finish")) == [(0, 9, "unknown"), (9, None, "ended")]


def test_a_finish_without_an_admission_has_waited_where_those_of_others_are_recorded() -> None:
    events = [("a", 0, "arrive"), ("b", 1, "arrive"), ("b", 2, "admit"), ("a", 9, "finish")]
    rows = [{"request": name, "ts_ns": at, "event": event} for name, at, event in events]
    told = request_states(trace_of(lifecycle=rows).lifecycle).collect()

    assert told.filter(request="a")["state"].to_list() == ["waiting", "ended"]


@looped("event", ["abort", "reject", "error"])
def test_what_ends_before_an_admission_has_waited(event: str) -> None:
    assert states((0, "arrive"), (9, event)) == [(0, 9, "waiting"), (9, None, "ended")]


def test_a_first_token_changes_nothing_of_what_was_admitted() -> None:
    assert states((0, "arrive"), (5, "admit"), (7, "first-token"), (9, "finish")) == [
        (0, 5, "waiting"), (5, 9, "running"), (9, None, "ended"),
    ]  # fmt: skip


@looped("event", ["finish", "abort", "reject", "error"])
def test_whatever_ends_a_request_ends_it(event: str) -> None:
    assert states((0, "arrive"), (5, "admit"), (9, event))[-1] == (9, None, "ended")


def test_who_is_put_back_after_a_preemption_is_still_preempted() -> None:
    told = states((0, "arrive"), (1, "admit"), (2, "preempt"), (4, "defer"), (6, "resume"))

    assert told[2:4] == [(2, 4, "preempted"), (4, 6, "preempted")]


def test_who_is_put_back_after_it_was_resumed_waits() -> None:
    told = states((0, "admit"), (2, "preempt"), (4, "resume"), (6, "defer"))

    assert told[-1] == (6, None, "waiting")


@looped(
    ("events", "state"),
    [
        (("arrive", "admit"), "running"),
        (("arrive", "admit", "preempt"), "preempted"),
        (("arrive", "admit", "finish"), "ended"),
        (("arrive", "reject"), "ended"),
    ],
)
def test_the_order_of_rows_of_one_moment_does_not_matter(
    events: tuple[str, ...], state: str
) -> None:
    forward = states(*((3, event) for event in events))
    backward = states(*((3, event) for event in reversed(events)))

    assert forward == backward == [(3, None, state)]


def test_who_is_preempted_and_resumed_in_one_moment_is_where_it_was() -> None:
    runs = states((0, "admit"), (4, "preempt"), (4, "resume"))
    waits = states((0, "preempt"), (4, "resume"), (4, "preempt"))

    assert [row[2] for row in runs] == ["running", "running"]
    assert [row[2] for row in waits] == ["preempted", "preempted"]


def test_a_step_that_does_not_say_how_long_it_took_lasts_until_the_next() -> None:
    steps = [{"step": n, "ts_ns": 10 * n, "kind": "decode"} for n in (1, 2)]
    rows = [{"step": 2, "ts_ns": 15, "request": "r", "phase": "decode", "num_tokens": 1}]

    times = step_times(trace_of(steps=steps, batch_rows=rows)).collect()

    assert times.select("step", "formed_ns", "from_ns", "to_ns").rows() == [
        (1, 10, 10, 20), (2, 15, 20, None),
    ]  # fmt: skip


def test_a_step_that_says_when_its_batch_was_formed_is_believed_before_its_rows() -> None:
    steps = [{"step": 2, "ts_ns": 20, "dur_ns": 5, "kind": "decode", "formed_ns": 12}]
    rows = [{"step": 2, "ts_ns": 15, "request": "r", "phase": "decode", "num_tokens": 1}]

    times = step_times(trace_of(steps=steps, batch_rows=rows)).collect()

    assert times.select("formed_ns", "from_ns", "to_ns").rows() == [(12, 20, 25)]


def test_a_block_behind_another_one_is_pending_until_that_has_ended() -> None:
    spans = [
        {**BLOCK, "dispatch_ns": 0, "ts_ns": 2, "end_ns": 10},
        {**BLOCK, "block": 1, "dispatch_ns": 4, "ts_ns": 13, "end_ns": 20},
    ]

    told = with_held(trace_of(core_spans=spans).core_spans).collect()

    assert told.select("given_ns", "held_ns", "ts_ns").rows() == [(0, 0, 2), (4, 10, 13)]


blocks = st.lists(st.tuples(*(st.integers(0, 12) for _ in range(3))), min_size=1, max_size=8)


@given(blocks, st.integers(-1, 40))
def test_a_core_is_held_if_a_block_was_dispatched_to_it_and_none_runs(
    drawn: list[tuple[int, int, int]], ts_ns: int
) -> None:
    """Blocks as (dispatch, wait, run): any, also such that overlap and overtake each other."""
    spans: list[dict[str, Any]] = [
        {**BLOCK, "block": n, "dispatch_ns": at, "ts_ns": at + wait, "end_ns": at + wait + run}
        for n, (at, wait, run) in enumerate(drawn)
    ]

    told = with_held(trace_of(core_spans=spans).core_spans).collect().to_dicts()

    runs = any(span["ts_ns"] <= ts_ns < span["end_ns"] for span in spans)
    given_one = any(span["dispatch_ns"] <= ts_ns < span["ts_ns"] for span in spans)
    assert any(row["held_ns"] <= ts_ns < row["ts_ns"] for row in told) == (given_one and not runs)


def test_arrivals_alone_are_a_list_and_no_run() -> None:
    arrivals = [{"ts_ns": n, "request": str(n), "event": "arrive"} for n in range(3)]
    finish = {"ts_ns": 9, "request": "1", "event": "finish"}
    step = {"ts_ns": 9, "step": 1, "kind": "decode"}

    received = {"ts_ns": 0, "request": "0", "event": "receive"}

    assert is_list_of_arrivals(trace_of(lifecycle=arrivals))
    assert is_list_of_arrivals(trace_of(lifecycle=[received, *arrivals]))
    assert not is_list_of_arrivals(trace_of(lifecycle=[*arrivals, finish]))
    assert not is_list_of_arrivals(trace_of(lifecycle=arrivals, steps=[step]))
    assert not is_list_of_arrivals(trace_of(steps=[step]))
