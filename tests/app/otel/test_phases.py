"""What a request was in: its states, with prefill and decode told apart where that is recorded."""

from __future__ import annotations

from typing import Any

from stepscope.app.otel.phases import request_phases
from tests.traces import trace_of

Row = dict[str, Any]


def lifecycle(*events: tuple[int, str]) -> list[Row]:
    return [{"ts_ns": at, "request": "r", "event": event} for at, event in events]


def step(number: int, begins: int, ends: int) -> Row:
    return {"step": number, "ts_ns": begins, "dur_ns": ends - begins, "kind": "mixed"}


def row(number: int, at: int, phase: str, **more: Any) -> Row:
    return {"step": number, "ts_ns": at, "request": "r", "phase": phase, "num_tokens": 1, **more}


def phases(events: list[Row], **tables: Any) -> list[tuple[str, int, int | None]]:
    found = request_phases(trace_of(lifecycle=events, **tables))
    return found.select("phase", "from_ns", "to_ns").rows()


def test_prefill_ends_with_the_first_token() -> None:
    told = lifecycle((0, "arrive"), (5, "admit"), (8, "first-token"), (20, "finish"))

    assert phases(told) == [("queue", 0, 5), ("prefill", 5, 8), ("decode", 8, 20)]


def test_which_of_both_it_ran_is_not_known_where_no_first_token_and_no_batch_is_told() -> None:
    told = lifecycle((0, "arrive"), (5, "admit"), (20, "finish"))

    assert phases(told) == [("queue", 0, 5), ("running", 5, 20)]


def test_without_batches_it_is_not_known_how_long_it_was_computed_again() -> None:
    told = lifecycle((0, "arrive"), (5, "admit"), (8, "first-token"), (9, "preempt"),
                     (12, "resume"), (20, "finish"))  # fmt: skip

    assert phases(told)[2:] == [("decode", 8, 9), ("preempted", 9, 12), ("running", 12, 20)]


def test_a_request_preempted_before_its_first_token_was_in_prefill() -> None:
    told = lifecycle((0, "arrive"), (5, "admit"), (7, "preempt"), (9, "resume"),
                     (12, "first-token"), (20, "finish"))  # fmt: skip

    assert [phase for phase, *_ in phases(told)] == [
        "queue", "prefill", "preempted", "prefill", "decode"
    ]  # fmt: skip


def test_after_a_preemption_prefill_ends_with_the_step_of_its_last_prefill() -> None:
    told = lifecycle((0, "arrive"), (5, "admit"), (8, "first-token"), (9, "preempt"),
                     (12, "resume"), (30, "finish"))  # fmt: skip
    steps = [step(1, 5, 8), step(2, 12, 15), step(3, 15, 19), step(4, 19, 30)]
    rows = [row(1, 5, "prefill"), row(2, 12, "prefill"), row(3, 15, "prefill"),
            row(4, 19, "decode")]  # fmt: skip

    assert phases(told, steps=steps, batch_rows=rows)[-2:] == [
        ("prefill", 12, 19), ("decode", 19, 30),
    ]  # fmt: skip


def test_what_was_thrown_out_between_two_chunks_was_in_prefill_until_then() -> None:
    told = lifecycle((0, "arrive"), (5, "admit"), (11, "preempt"))
    rows = [row(1, 5, "prefill", is_final_chunk=False)]

    assert phases(told, steps=[step(1, 5, 8)], batch_rows=rows) == [
        ("queue", 0, 5), ("prefill", 5, 11), ("preempted", 11, None),
    ]  # fmt: skip


def test_a_last_chunk_ends_prefill_where_no_first_token_is_told() -> None:
    told = lifecycle((0, "arrive"), (5, "admit"), (11, "preempt"))
    rows = [row(1, 5, "prefill", is_final_chunk=True)]

    assert phases(told, steps=[step(1, 5, 8)], batch_rows=rows)[1:3] == [
        ("prefill", 5, 8), ("decode", 8, 11),
    ]  # fmt: skip


def test_who_is_only_in_batches_that_decode_decodes_from_the_beginning() -> None:
    told = lifecycle((5, "admit"), (11, "finish"))

    found = phases(told, steps=[step(1, 5, 8)], batch_rows=[row(1, 6, "decode")])

    assert found == [("decode", 5, 11)]


def test_a_phase_that_goes_on_is_not_over() -> None:
    told = lifecycle((0, "arrive"), (5, "admit"), (8, "first-token"))

    assert phases(told)[-1] == ("decode", 8, None)


def test_what_is_put_back_in_the_queue_waits_in_one_phase() -> None:
    assert phases(lifecycle((0, "arrive"), (3, "defer"), (5, "admit")))[0] == ("queue", 0, 5)


def test_front_end_and_delivery_are_phases_where_they_are_recorded() -> None:
    told = lifecycle((0, "receive"), (2, "arrive"), (5, "admit"), (6, "first-token"),
                     (9, "finish"), (11, "deliver"))  # fmt: skip

    assert phases(told) == [
        ("front-end", 0, 2), ("queue", 2, 5), ("prefill", 5, 6), ("decode", 6, 9),
        ("delivery", 9, 11),
    ]  # fmt: skip


def test_a_trace_that_names_no_request_has_no_phases() -> None:
    assert phases([]) == []
