"""TRC006: a recording was closed with requests open."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.findings.rule import is_applicable
from stepscope.analyzers.rules.trc.trc006_requests_left_open import RequestsLeftOpen
from stepscope.ingest.manifest import ReadReport
from tests.analyzers.conftest import Record
from tests.analyzers.rows import event, life
from tests.analyzers.serving_rows import decode, row
from tests.looped import looped
from tests.traces import trace_of

# Two were let in, and the engine died in the step that followed; two more were waiting.
CAME = [event(name, "arrive", 5) for name in "abcd"]
DIED: dict[str, Any] = {
    "lifecycle": [*CAME, event("a", "admit", 10), event("b", "admit", 10)],
    "steps": [decode(1, 2, dur_ns=None)],
    "batch_rows": [row(1, "a"), row(1, "b")],
}


def left_open(**tables: Any) -> list[Finding]:
    return RequestsLeftOpen().check(trace_of(**tables))


def test_an_engine_that_died_in_a_step_has_left_all_requests_open() -> None:
    (found,) = left_open(**DIED)

    assert found.message == (
        "4 of 4 requests were still open when the recording was closed: 2 in the batch of step 1, "
        "which never ended, and 2 waiting"
    )
    assert (found.step, found.ts_ns, found.request, found.count) == (1, 10, "a", 4)


def test_who_runs_and_is_in_no_batch_is_told_apart_when_others_ended() -> None:
    after = [decode(2, 1), decode(3, 1)]
    served = [*life("d", 0, 1, 20), event("a", "admit", 10), event("b", "admit", 10)]
    lifecycle = [*CAME[:3], *served]

    (found,) = left_open(lifecycle=lifecycle, steps=after, batch_rows=[row(2, "b"), row(3, "a")])

    assert found.message == (
        "3 of 4 requests were still open when the recording was closed: 1 in the batch of step 3, "
        "1 waiting, and 1 running and in no batch"
    )


def test_of_an_engine_that_records_no_ends_only_those_who_were_there_are_open() -> None:
    lifecycle = [*CAME[:2], event("a", "admit", 10), event("b", "admit", 10)]

    (found,) = left_open(
        lifecycle=lifecycle, steps=[decode(1, 2), decode(9, 1)],
        batch_rows=[row(1, "a"), row(1, "b"), row(9, "b")],
    )  # fmt: skip

    assert (found.request, found.count) == ("b", 1)


def test_a_run_in_which_every_request_ended_is_clean() -> None:
    ended = [event(name, "abort", 30, cause="the engine died") for name in "abcd"]

    assert left_open(**DIED | {"lifecycle": [*DIED["lifecycle"], *ended]}) == []


@looped(
    "told",
    [
        pytest.param({"closed": False}, id="not closed"),
        pytest.param({"report": ReadReport(read={"line": 4})}, id="a file of another program"),
        pytest.param({"tables": {"lifecycle": "partial"}}, id="rows are missing"),
    ],
)
def test_where_the_rest_may_be_elsewhere_it_is_not_judged(told: dict[str, Any]) -> None:
    assert not is_applicable(RequestsLeftOpen(), trace_of(**DIED, **told))


def test_a_list_of_arrivals_is_no_run() -> None:
    assert not is_applicable(RequestsLeftOpen(), trace_of(lifecycle=CAME))
    assert is_applicable(RequestsLeftOpen(), trace_of(lifecycle=CAME, steps=DIED["steps"]))


def test_an_engine_whose_executor_dies_is_found(record: Record) -> None:
    (found,) = RequestsLeftOpen().check(record("fcfs-preemption", fault="executor-dies"))

    assert found.message == (
        "40 of 40 requests were still open when the recording was closed: 30 in the batch of "
        "step 5, which never ended, and 10 waiting"
    )
    assert RequestsLeftOpen().check(record("fcfs-preemption")) == []
