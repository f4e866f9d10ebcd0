"""`waiting-queue`: the rules made for a report's bug find it, and are silent once repaired."""

from __future__ import annotations

from pathlib import Path

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.findings.finding import Severity
from stepscope.engine.scenarios import Options, scenario
from stepscope.engine.scenarios.queue_workloads import CASES
from stepscope.ingest.trace import Trace
from tests.looped import looped
from tests.matrix import FIRES, codes


def checked(
    folder: Path, variant: str = "after", fault: str | None = None, **settings: str
) -> CheckResult:
    out = folder / "run.trace"
    faults = frozenset([fault] if fault else [])
    scenario("waiting-queue").record(variant, out, Options(settings=settings, faults=faults))
    return check(Trace.open(out))


def loud(result: CheckResult) -> list[str]:
    return [each.message for each in result.findings if each.severity is not Severity.INFO]


@looped("workload", CASES)
def test_each_report_is_found_in_before_and_silent_in_after(tmp_path: Path, workload: str) -> None:
    before = checked(tmp_path / "b", "before", workload=workload)
    after = checked(tmp_path / "a", workload=workload)

    own = set(FIRES[CASES[workload].fault])
    assert own <= {*codes(before, Severity.ERROR), *codes(before, Severity.WARNING)}
    assert set(codes(before, Severity.ERROR)) <= own
    assert loud(after) == []


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
    tmp_path: Path, workload: str, settings: dict[str, str]
) -> None:
    assert loud(checked(tmp_path, workload=workload, **settings)) == []


def test_a_request_that_fits_the_pool_is_served_whatever_happens_to_one_that_does_not(
    tmp_path: Path,
) -> None:
    assert loud(checked(tmp_path, fault="never-fits-and-waits", video_blocks="0")) == []


def test_two_bugs_in_one_engine_are_both_found(tmp_path: Path) -> None:
    found = checked(tmp_path, "before", "ready-not-looked-at", workload="parked")

    assert "STV020" in codes(found, Severity.ERROR)
