"""STV015: a request that was dropped is told to have finished, or nothing says why it was."""

from __future__ import annotations

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.stv.stv015_silent_reject import SilentReject
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import Row, decision, event, life
from tests.analyzers.serving_rows import row
from tests.looped import looped
from tests.traces import trace_of

SERVED = life("a", 0, 1, 9)


def dropped(
    *more: Row, told: list[Row] | None = None, rows: list[Row] | None = None
) -> list[Finding]:
    return SilentReject().check(
        trace_of(lifecycle=[*SERVED, *more], decisions=told or [], batch_rows=rows or [])
    )


def test_a_request_that_finished_and_was_never_let_in_is_found() -> None:
    (found,) = dropped(event("b", "arrive", 2), event("b", "finish", 5))

    assert found.message == (
        "1 of 2 requests finished and was never let in: first b, without a cause"
    )
    assert (found.request, found.ts_ns) == ("b", 5)


def test_a_request_that_was_rejected_without_a_word_is_found() -> None:
    (found,) = dropped(event("b", "arrive", 2), event("b", "reject", 5))

    assert found.message == "1 of 2 requests was rejected and nothing says why: first b"


@looped(
    "more",
    [
        pytest.param([event("b", "arrive", 2), event("b", "reject", 5, cause="full")], id="cause"),
        pytest.param([event("b", "finish", 5)], id="it came before the recording"),
        pytest.param([event("b", "arrive", 2), event("b", "abort", 5)], id="the client hung up"),
        pytest.param([event("b", "arrive", 2), event("b", "finish", 5, num_generated=1)],
                     id="it had a token"),
    ],
)  # fmt: skip
def test_ends_that_are_explained_or_served_are_clean(more: list[Row]) -> None:
    assert dropped(*more) == []


def test_a_decision_with_a_reason_explains_a_reject() -> None:
    told = [decision("request", "b", "rejected", 5, reason="longer than the KV pool")]

    assert dropped(event("b", "reject", 5), told=told) == []


def test_a_row_of_a_batch_shows_that_a_request_was_let_in() -> None:
    finished = [event("b", "arrive", 2), event("b", "finish", 5)]

    assert dropped(*finished, rows=[row(1, "a"), row(2, "b")]) == []


def test_where_no_admission_is_recorded_it_is_not_known_who_was_let_in() -> None:
    lifecycle = [event("b", "arrive", 2), event("b", "finish", 5)]

    assert check(trace_of(lifecycle=lifecycle), (SilentReject(),)).not_applicable == ("STV015",)


def test_an_engine_that_hides_what_it_drops_is_found(record: Record) -> None:
    (found,) = SilentReject().check(record("fcfs-preemption", fault="ignored-told-as-finished"))

    assert found.message == (
        "8 of 24 requests finished and were never let in: first req-16, without a cause"
    )


@each_scenario
def test_sound_engines_are_clean(record: Record, scenario: str) -> None:
    assert SilentReject().check(record(scenario)) == []
