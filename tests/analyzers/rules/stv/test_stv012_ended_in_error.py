"""STV012: requests that ended because something went wrong."""

from __future__ import annotations

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.findings.rule import is_applicable
from stepscope.analyzers.rules.stv.stv012_ended_in_error import EndedInError
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row, event, life
from tests.looped import looped
from tests.traces import trace_of


def failed(*ends: Row) -> list[Finding]:
    """What is found of those ends, beside a request that was served."""
    return EndedInError().check(trace_of(lifecycle=[*life("served", 0, 1, 9), *ends]))


def test_requests_that_ended_in_error_are_one_finding_for_each_cause() -> None:
    found = failed(
        event("a", "abort", 30, cause="error", num_generated=3),
        event("b", "abort", 20, cause="error", num_generated=0),
        event("c", "finish", 40, cause="CUDA out of memory: tried to allocate 3 GiB"),
    )

    assert [each.message for each in found] == [
        '2 of 4 requests ended in error, because "error": first b, aborted after 0 tokens',
        "1 of 4 requests ended in error, because "
        '"CUDA out of memory: tried to allocate * GiB": first c, finished',
    ]
    assert (found[0].request, found[0].ts_ns, found[0].end_ns, found[0].count) == ("b", 20, 30, 2)
    assert found[0].evidence["ended without a token"] == 1


@looped(
    ("cause", "why"),
    [
        (None, "and nothing says why"),
        ("stop", 'because "stop"'),
        ("EngineDeadError", 'because "EngineDeadError"'),
    ],
)
def test_an_end_that_is_an_error_is_found_whatever_its_cause(cause: str | None, why: str) -> None:
    (found,) = failed(event("a", "error", 30, cause=cause, num_generated=2))

    assert found.message == f"1 of 2 requests ended in error, {why}: first a, failed after 2 tokens"


def test_errors_without_a_cause_are_judged_where_no_end_has_one() -> None:
    trace = trace_of(lifecycle=[*life("served", 0, 1, 9), event("a", "error", 30)])

    assert is_applicable(EndedInError(), trace)


@looped("cause", [None, "aborted", "length_capped", "stop", "the client timed out", "terrors"])
def test_an_end_that_does_not_say_that_it_went_wrong_is_clean(cause: str | None) -> None:
    assert failed(event("a", "abort", 30, cause=cause)) == []


@looped(
    "cause",
    ["error", "Error: no such token", "EngineDeadError", "internal", "worker failed", "NCCL crash"],
)
def test_a_cause_says_in_several_ways_that_it_went_wrong(cause: str) -> None:
    assert len(failed(event("a", "abort", 30, cause=cause))) == 1


def test_causes_that_differ_by_numbers_or_further_lines_are_one() -> None:
    (found,) = failed(
        event("a", "abort", 30, cause="error 17 in rank 3\nTraceback"),
        event("b", "abort", 40, cause="error 18 in rank 1\nTraceback"),
    )

    assert (found.count, found.evidence["cause"]) == (2, "error 17 in rank 3\nTraceback")


def test_aborts_of_which_no_cause_was_recorded_cannot_be_judged() -> None:
    def applies(*rows: Row) -> bool:
        return is_applicable(EndedInError(), trace_of(lifecycle=rows))

    assert not applies(*life("a", 0, 1, 9), event("b", "abort", 30))
    assert not applies(event("a", "arrive", 0))
    assert applies(*life("a", 0, 1, 9))
    assert applies(*life("a", 0, 1, 9), event("b", "abort", 30, cause="stop"))


def test_an_engine_that_ends_the_preempted_in_error_is_found(record: Record) -> None:
    sizes = {"requests": "24", "num_kv_blocks": "60"}
    trace = record("fcfs-preemption", fault="preempted-ends-in-error", **sizes)
    preempted = trace.lifecycle.filter(event="preempt").collect()["request"].unique()

    (found,) = EndedInError().check(trace)

    assert found.count == len(preempted) == 6
    assert EndedInError().check(record("fcfs-preemption", **sizes)) == []
