"""TRC001: the recording was not closed."""

from __future__ import annotations

from stepscope.analyzers.rules.trc001_not_closed import NotClosed
from stepscope.ingest.manifest import ReadReport
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


def test_a_file_that_ends_too_early_is_told_by_what_was_read_of_it() -> None:
    report = ReadReport(read={"X": 2_000, "M": 7}, skipped={"torn": 1}, notes=("cut off at 9 kB",))

    (found,) = NotClosed().check(trace_of(steps=[STEP], closed=False, report=report))

    assert found.message == (
        "the file ends too early: 2,007 records of it were read (cut off at 9 kB); "
        "what came later is missing"
    )
    assert found.evidence == {"records read": 2_007, "records skipped": 1, "last step": 4}
    assert "copy all of it" in found.fix
