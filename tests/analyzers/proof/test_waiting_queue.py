"""`waiting-queue`: the rules made for a report's bug find it, and are silent once repaired."""

from __future__ import annotations

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.findings.finding import Severity
from stepscope.engine.scenarios import Options
from stepscope.engine.scenarios.queue_workloads import CASES
from tests.engine.recorded_once import RecordedOnce
from tests.looped import looped
from tests.matrix import FIRES, codes
from tests.tiers import slow


def checked(
    runs: RecordedOnce, variant: str = "after", fault: str | None = None, **settings: str
) -> CheckResult:
    faults = frozenset([fault] if fault else [])
    return check(runs.trace("waiting-queue", variant, Options(settings=settings, faults=faults)))


def loud(result: CheckResult) -> list[str]:
    return [each.message for each in result.findings if each.severity is not Severity.INFO]


@looped("workload", CASES)
def test_each_report_is_found_in_before_and_silent_in_after(
    recorded_once: RecordedOnce, workload: str
) -> None:
    before = checked(recorded_once, "before", workload=workload)
    after = checked(recorded_once, workload=workload)

    own = set(FIRES[CASES[workload].fault])
    assert own <= {*codes(before, Severity.ERROR), *codes(before, Severity.WARNING)}
    assert set(codes(before, Severity.ERROR)) <= own
    assert loud(after) == []


@slow
@looped(
    ("workload", "settings"),
    [
        ("half-the-pool", {"loads": "lateral"}),
        ("half-the-pool", {"kv_blocks": "1024", "requests": "4"}),
        ("four-prompts", {"requests": "12"}),
        ("stream", {"decode_rounds": "1"}),
        ("parked", {"requests": "40"}),
    ],
)
def test_other_repairs_and_sizes_are_silent_too(
    recorded_once: RecordedOnce, workload: str, settings: dict[str, str]
) -> None:
    assert loud(checked(recorded_once, workload=workload, **settings)) == []


def test_a_request_that_fits_the_pool_is_served_whatever_happens_to_one_that_does_not(
    recorded_once: RecordedOnce,
) -> None:
    assert loud(checked(recorded_once, fault="never-fits-and-waits", video_blocks="0")) == []


def test_two_bugs_in_one_engine_are_both_found(recorded_once: RecordedOnce) -> None:
    found = checked(recorded_once, "before", "ready-not-looked-at", workload="parked")

    assert "STV020" in codes(found, Severity.ERROR)
