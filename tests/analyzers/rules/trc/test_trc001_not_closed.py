"""TRC001: the recording was not closed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from stepscope.analyzers.findings.finding import Severity
from stepscope.analyzers.rules.trc.trc001_not_closed import NotClosed
from stepscope.ingest.manifest import ReadReport
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.trace import Trace
from tests.analyzers.serving_rows import row, step
from tests.looped import looped
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


def test_the_finding_stands_at_the_step_that_was_under_way_when_the_engine_died() -> None:
    steps = [step(3), step(4), step(5, dur_ns=None)]

    (found,) = NotClosed().check(trace_of(steps=steps, batch_rows=[row(6, "a")], closed=False))

    assert (found.step, found.ts_ns) == (5, 50)


def test_a_step_of_which_only_the_batch_was_written_was_under_way() -> None:
    formed = [row(3, "a"), row(4, "a", ts_ns=31), row(5, "a", ts_ns=41)]

    (found,) = NotClosed().check(trace_of(steps=[step(3)], batch_rows=formed, closed=False))

    assert (found.step, found.ts_ns) == (4, 31)


def test_where_no_step_says_how_long_it_took_the_finding_stands_at_the_last() -> None:
    steps = [step(n, dur_ns=None) for n in (3, 4, 5)]

    (found,) = NotClosed().check(trace_of(steps=steps, closed=False))

    assert found.step == 5


def test_an_unclosed_trace_that_says_nothing_else_is_found() -> None:
    assert len(NotClosed().check(trace_of(closed=False))) == 1


def test_a_closed_trace_is_clean() -> None:
    assert NotClosed().check(trace_of(steps=[STEP])) == []


def test_a_recording_that_stopped_before_it_was_closed_is_told_with_the_reason() -> None:
    report = ReadReport(notes=("recording stopped: No space left on device",))

    (found,) = NotClosed().check(trace_of(steps=[STEP], dropped={"steps": 40}, report=report))

    assert found.message == (
        "the recording is not whole: 40 rows were dropped "
        "(recording stopped: No space left on device)"
    )
    assert (found.rank, found.step, found.severity) == (0, 4, Severity.WARNING)
    assert "make room" in found.fix


def test_a_file_that_ends_too_early_is_told_by_what_was_read_of_it() -> None:
    report = ReadReport(read={"X": 2_000, "M": 7}, skipped={"torn": 1}, notes=("cut off at 9 kB",))

    (found,) = NotClosed().check(trace_of(steps=[STEP], closed=False, report=report))

    assert found.message == (
        "the file ends too early: 2,007 records of it were read (cut off at 9 kB); "
        "what came later is missing"
    )
    assert found.evidence == {"records read": 2_007, "records skipped": 1, "last step": 4}
    assert "copy all of it" in found.fix


def test_a_recording_that_its_program_still_writes_has_not_ended(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.trace", producer="engine") as recorder:
        recorder.steps(step=1, ts_ns=0, kind="decode")

        live = Trace.open(tmp_path / "run.trace")

        assert NotClosed().check(live) == []
        assert live.manifest.live_ranks == ("0",)
        assert "still recording" in repr(live)
        assert "ended before it was finished" not in repr(live)
    assert Trace.open(tmp_path / "run.trace").manifest.live_ranks == ()


def test_a_recording_whose_program_was_killed_has_ended(tmp_path: Path) -> None:
    code = (
        "import os, sys; from stepscope.ingest.recorder import Recorder; "
        "r = Recorder(sys.argv[1], producer='engine'); "
        "r.steps(step=1, ts_ns=0, kind='decode'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "run.trace")], check=False)

    trace = Trace.open(tmp_path / "run.trace")

    assert trace.manifest.live_ranks == ()
    assert [found.code for found in NotClosed().check(trace)] == ["TRC001"]
    assert "ended before it was finished" in repr(trace)


WHOLE = {"0": {"rows": {"steps": 2, "lifecycle": 3}, "discarded_bytes": 0, "notes": []}}
SERVED = [
    {"step": 3, "ts_ns": 30, "request": "a", "event": "arrive"},
    {"step": 3, "ts_ns": 31, "request": "a", "event": "admit"},
    {"step": 4, "ts_ns": 49, "request": "a", "event": "finish"},
]


def severity(recovered: dict[str, Any] = WHOLE, **more: Any) -> Severity:
    tables = {"steps": [step(3), step(4)], "lifecycle": SERVED, **more}
    (found,) = NotClosed().check(trace_of(closed=False, recovered=recovered, **tables))
    return found.severity


def test_where_only_the_close_is_missing_it_is_a_note() -> None:
    assert severity() is Severity.INFO


@looped(
    "more",
    [
        {"steps": [step(3), step(4, dur_ns=None)]},
        {"steps": [step(3)], "batch_rows": [row(4, "a", ts_ns=41)]},
        {"lifecycle": SERVED[:2]},
        {"lifecycle": []},
        {"steps": []},
        {"dropped": {"spans": 1}},
        {"recovered": {"0": {**WHOLE["0"], "discarded_bytes": 9}}},
        {"recovered": {"0": {**WHOLE["0"], "notes": ["steps-000001.seg: the header is damaged"]}}},
        {"recovered": {"0": "?"}},
    ],
    ids=[
        "a step had not ended", "of a step only the batch is there", "a request was open",
        "of requests nothing is known", "of steps nothing is known", "rows were dropped",
        "bytes are unreadable", "a segment is damaged", "the manifest makes no sense",
    ],
)  # fmt: skip
def test_it_is_a_warning_where(more: dict[str, Any]) -> None:
    assert severity(**more) is Severity.WARNING
