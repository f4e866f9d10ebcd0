"""An engine that dies with requests open is found, however it died, and so are its errors."""

from __future__ import annotations

from typing import Any

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding, Severity
from tests.analyzers.rows import event
from tests.traces import trace_of

LIFE = [
    event("a", "receive", 0), event("a", "arrive", 1), event("a", "admit", 5),
    event("b", "arrive", 2), event("c", "arrive", 3),
]  # fmt: skip
STEPS = [{"step": 1, "ts_ns": 5, "kind": "prefill", "num_running": 1, "num_waiting": 2}]
ROWS = [{"step": 1, "ts_ns": 5, "request": "a", "phase": "prefill", "num_tokens": 8}]
KILLED: dict[str, Any] = {
    "closed": False,
    "recovered": {"0": {"rows": {"steps": 1, "lifecycle": 5}, "discarded_bytes": 0, "notes": []}},
}


def found(*lifecycle: Any, **manifest: Any) -> dict[str, Finding]:
    trace = trace_of(steps=STEPS, batch_rows=ROWS, lifecycle=[*LIFE, *lifecycle], **manifest)
    return {each.code: each for each in check(trace).findings}


def test_an_engine_that_was_killed_in_its_first_step_is_found_with_who_was_open() -> None:
    dead = found(**KILLED)["TRC001"]

    assert dead.message.endswith("3 of 3 requests were open in step 1, which never ended")
    assert (dead.step, dead.severity, dead.evidence["requests open"]) == (1, Severity.WARNING, 3)


def test_an_engine_that_closed_its_recording_as_it_died_is_found_with_who_was_open() -> None:
    dead = found()["TRC006"]

    assert "1 in the batch of step 1, which never ended, and 2 waiting" in dead.message
    assert (dead.step, dead.count) == (1, 3)


def test_requests_that_got_an_error_when_their_engine_died_are_found() -> None:
    ended = [event(name, "error", 9, cause="EngineDeadError") for name in "abc"]

    failed = found(*ended, **KILLED)

    assert failed["STV012"].count == 3
    assert "were open" not in failed["TRC001"].message
