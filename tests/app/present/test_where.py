"""Where a finding is, in words: the same parts in a check, in the terminal and in the page."""

from __future__ import annotations

import sys
from subprocess import run

import pytest

from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.app.present.facts import whereabouts
from stepscope.app.present.where import num_steps, where
from stepscope.app.timeline import Composition, Timeline
from tests.tiers import slow
from tests.traces import trace_of

FOUND = Finding(
    code="STV001", name="request-starved", severity=Severity.ERROR, message="it waits",
    fix="serve it", request="r7", rank=1, step=1234, ts_ns=2_500_000_000,
)  # fmt: skip


@pytest.fixture
def timeline() -> Timeline:
    return Timeline.of(
        trace_of(
            lifecycle=[
                {"rank": rank, "request": "r7", "event": event, "ts_ns": ts_ns}
                for rank in (0, 1)
                for event, ts_ns in (("arrive", 0), ("finish", 9_000_000_000))
            ]
        )
    )


def test_a_check_and_the_fronts_say_the_same_of_a_place(timeline: Timeline) -> None:
    assert where(FOUND) == "rank 1 · request r7 · step 1,234 · 2.500000 s"
    assert " · ".join(whereabouts(FOUND, timeline)) == where(FOUND)


def test_what_a_name_of_a_request_holds_steers_no_terminal() -> None:
    hostile = Finding(
        code="STV001", name="x", severity=Severity.INFO, message="", fix="", request="\x1b[31m"
    )

    assert where(hostile) == "request ·[31m"


@slow
def test_saying_where_findings_are_loads_no_timeline() -> None:
    code = (
        "import sys, stepscope.app.present.report_text; "
        "sys.exit('stepscope.app.timeline' in sys.modules)"
    )

    assert run([sys.executable, "-c", code], check=False).returncode == 0


def test_steps_that_a_trace_does_not_tell_of_are_not_counted() -> None:
    steps = [{"step": at, "ts_ns": at, "dur_ns": 1, "kind": "decode"} for at in range(3)]

    assert num_steps(Composition.of(trace_of(steps=steps))) == "3"
    nothing = trace_of(counters=[{"name": "x", "value": 1.0}])
    assert num_steps(Composition.of(nothing)) == "none to show"
