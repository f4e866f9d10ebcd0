"""Whom a trace does not name is not nobody."""

from __future__ import annotations

from typing import Any

from stepscope.app.debug import Session, StepDetail, batch_heading, left_out_heading
from tests.traces import trace_of

STEP = {"step": 1, "ts_ns": 10, "dur_ns": 5, "kind": "prefill"}
FULL = {**STEP, "num_prefill_reqs": 4, "num_decode_reqs": 0, "num_prefill_tokens": 8192}
ROW = {"step": 1, "ts_ns": 10, "request": "a", "phase": "prefill", "num_tokens": 8}
LET_IN = [{"ts_ns": 1, "request": "a", "event": event} for event in ("arrive", "admit")]


def detail(**tables: Any) -> StepDetail:
    return Session(trace_of(**tables)).detail()


def test_a_batch_without_rows_is_not_a_batch_of_nobody() -> None:
    heading, unsaid = batch_heading(detail(steps=[FULL]))

    assert heading == "batch of 4"
    assert unsaid == "The trace does not record who is in this step's batch."


def test_a_batch_of_which_the_rows_are_missing_is_not_one_of_nobody() -> None:
    rows = [{**ROW, "step": 2, "ts_ns": 20}]
    steps = [FULL, {**STEP, "step": 2, "ts_ns": 20}]

    assert batch_heading(detail(steps=steps, batch_rows=rows))[0] == "batch of 4"


def test_rows_of_some_of_a_batch_say_that_they_are_not_all() -> None:
    assert batch_heading(detail(steps=[FULL], batch_rows=[ROW])) == (
        "batch of 1",
        "The step says 4; these are the ones that the trace names.",
    )


def test_an_idle_step_has_nobody_in_its_batch() -> None:
    told = detail(steps=[{**STEP, "kind": "idle"}], lifecycle=LET_IN)

    assert batch_heading(told) == ("batch of 0", "No request is in this step's batch.")
    assert [left.request for left in told.left_out] == ["a"]


def test_a_trace_without_batches_has_no_batch_of_nobody() -> None:
    tasks = [{"ts_ns": 1, "task": 1, "shape": "AIC", "num_blocks": 1}]

    assert batch_heading(detail(tasks=tasks)) == ("batch", "The trace does not record batches.")


def test_before_the_first_step_there_is_no_batch_yet() -> None:
    session = Session(trace_of(steps=[FULL], batch_rows=[ROW], lifecycle=LET_IN))
    session.goto(ts_ns=1)

    assert batch_heading(session.detail()) == ("batch of 0", "No batch was formed yet.")


def test_without_events_nobody_can_say_who_was_left_out() -> None:
    assert left_out_heading(detail(steps=[FULL], batch_rows=[ROW])) == (
        "left out",
        "The trace does not record who waits.",
    )
    heading, unsaid = left_out_heading(detail(steps=[{**FULL, "num_waiting": 7}]))
    assert (heading, unsaid.split(".")[0]) == ("left out", "The step says that 7 wait")


def test_who_runs_is_not_left_out_of_a_batch_that_is_not_known() -> None:
    told = detail(steps=[FULL], lifecycle=LET_IN)

    assert told.left_out == ()
    assert left_out_heading(told) == (
        "left out 0",
        "The trace does not record which of the running requests are in the batch.",
    )


def test_arrivals_alone_make_no_queue() -> None:
    arrivals = [{"ts_ns": n, "request": str(n), "event": "arrive"} for n in range(3)]

    assert detail(lifecycle=arrivals).after.waiting is None


def test_a_block_whose_group_and_number_are_not_known_still_runs_on_its_core() -> None:
    span = {"ts_ns": 5, "task": 0, "block": None, "shape": "MIX", "group": None, "core": 25}

    after = detail(core_spans=[span]).after

    assert after.cores is not None
    assert after.cores[25].running == (0, None)
    assert after.cores[25].state == "running"
