"""STV020: what a request waited for has come, and the scheduler does not look."""

from __future__ import annotations

from typing import Any

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.stv.stv020_ready_not_noticed import ReadyNotNoticed
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row, decision, event
from tests.analyzers.serving_rows import decode
from tests.looped import looped
from tests.traces import trace_of

STEPS = [decode(n, 1, num_waiting=1) for n in range(1, 21)]  # at 10 to 200, 10 ns each
COMPILING = "its grammar is being compiled"
SKIPPED = decision("request", "a", "deferred", 10, reason=COMPILING, step=1)
ARRIVED = [event("a", "arrive", 5), event("a", "ready", 35)]


def unnoticed(*more: Row, told: tuple[Row, ...] = (SKIPPED,)) -> list[Finding]:
    trace = trace_of(steps=STEPS, lifecycle=[*ARRIVED, *more], decisions=told)
    return ReadyNotNoticed().check(trace)


def test_a_request_that_is_ready_and_not_looked_at_is_found() -> None:
    (found,) = unnoticed(event("a", "defer", 150))

    assert found.message == (
        "1 request was ready and not looked at: a for 11 steps (4 to 14, 115 ns), told last that "
        '"its grammar is being compiled"'
    )
    assert (found.request, found.step, found.ts_ns, found.end_ns) == ("a", 4, 35, 150)


def test_one_that_is_never_looked_at_counts_to_the_end_of_the_trace() -> None:
    (found,) = unnoticed()

    assert (found.evidence["longest run_steps"], found.end_ns) == (17, 210)


def test_the_one_that_was_ready_for_longest_stands_for_all() -> None:
    (found,) = unnoticed(event("a", "admit", 150), event("b", "arrive", 5), event("b", "ready", 20))

    assert found.message.startswith("2 requests were ready and not looked at: longest b for 19 ")
    assert found.count == 2
    assert "told last" not in found.evidence


def test_to_be_told_of_ones_place_in_the_queue_is_not_to_be_looked_at() -> None:
    behind = decision("request", "a", "deferred", 60, step=6, reason="r0", resource="queue")

    assert len(unnoticed(event("a", "admit", 150), told=(SKIPPED, behind))) == 1


@looped(
    "noticed",
    [
        event("a", "defer", 110),
        event("a", "admit", 110),
        event("a", "reject", 40),
        decision("request", "a", "deferred", 110, step=11, resource="kv-block"),
    ],
    ids=["promoted", "let in", "turned away", "told what it lacks"],
)
def test_who_is_looked_at_in_time_is_clean(noticed: Row) -> None:
    if "verdict" in noticed:
        assert unnoticed(told=(SKIPPED, noticed)) == []
    else:
        assert unnoticed(noticed) == []


@looped(
    "tables",
    [
        {"lifecycle": [ARRIVED[0]], "decisions": [SKIPPED]},
        {"lifecycle": ARRIVED},
    ],
    ids=["nobody is told to be ready", "no decision is recorded"],
)
def test_where_it_is_not_known_it_cannot_be_judged(tables: dict[str, Any]) -> None:
    trace = trace_of(steps=STEPS, **tables)

    assert check(trace, (ReadyNotNoticed(),)).not_applicable == ("STV020",)


def test_an_engine_whose_loop_ends_with_the_budget_is_found(record: Record) -> None:
    (found,) = ReadyNotNoticed().check(record("waiting-queue", fault="ready-not-looked-at"))

    assert found.message == (
        "8 requests were ready and not looked at: longest json-00 for 31 steps (2 to 32, 19.5 s)"
    )


def test_a_request_whose_kv_has_come_behind_a_head_that_stops_the_loop_is_found(
    record: Record,
) -> None:
    (found,) = ReadyNotNoticed().check(record("waiting-queue", fault="half-the-pool-each"))

    assert (found.request, found.evidence["told last"]) == ("req-01", "its KV is on its way")


def test_an_engine_that_looks_at_nobody_is_found_by_what_it_never_decided(record: Record) -> None:
    settings = {"requests": "2", "budget": "121", "timeout_s": "7"}

    trace = record("waiting-queue", fault="ready-not-looked-at", **settings)

    codes = {finding.code for finding in check(trace).findings}
    assert "STV020" in codes


def test_a_recorder_that_tells_only_of_admissions_is_not_judged() -> None:
    admitted = decision("request", "b", "admitted", 10, step=1)

    trace = trace_of(steps=STEPS, lifecycle=ARRIVED, decisions=[admitted])

    assert not ReadyNotNoticed().applies(trace)
