"""TRC001: the recording was not closed."""

from __future__ import annotations

from stepscope.analyzers.rules.trc001_not_closed import NotClosed
from tests.traces import trace_of

STEP = {"step": 4, "ts_ns": 70, "dur_ns": 30, "kind": "decode"}


def test_a_recovered_trace_is_found_with_what_was_recovered() -> None:
    recovered = {"1": {"rows": {"steps": 3, "spans": 9}, "discarded_bytes": 17, "notes": []}}
    trace = trace_of(steps=[STEP], closed=False, recovered=recovered, dropped={"spans": 2})

    (found,) = NotClosed().check(trace)

    assert found.message == (
        "the recording of rank 1 was not closed: 12 rows recovered, 17 bytes unreadable; "
        "what came later is missing"
    )
    assert (found.rank, found.count) == (1, 1)
    assert found.evidence == {
        "rows recovered": 12, "discarded_bytes": 17, "rows dropped": 2,
    }  # fmt: skip


def test_the_finding_stands_at_the_last_step() -> None:
    trace = trace_of(steps=[STEP], closed=False, recovered={"0": {"rows": {"steps": 1}}})

    (found,) = NotClosed().check(trace)

    assert (found.step, found.ts_ns, found.end_ns) == (4, 70, 100)


def test_an_unclosed_trace_that_says_nothing_else_is_found() -> None:
    assert len(NotClosed().check(trace_of(closed=False))) == 1


def test_a_closed_trace_is_clean() -> None:
    assert NotClosed().check(trace_of(steps=[STEP])) == []
