"""A trace without a clock is an order: no rule compares durations of it, or prints one."""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any

from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.rule import Rule
from stepscope.analyzers.views.known import CLOCK
from stepscope.ingest.manifest import ClockInfo
from tests.analyzers.check.least_faults import LEAST_FAULTS, LeastFault
from tests.analyzers.check.warped import WARPS, warped
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

NO_CLOCK = ClockInfo("none")
READS_DURATIONS = re.compile(r"\bduration\(|_ns: int = |\bdur_ns\b|\bgap_ns\b|\blasted_ns\b")
READS_THEM_AS_ORDER = {
    "COL001": "how many elements and calls there are, and whether they ended",
    "COL002": "whether a collective ended",
    "COR012": "whether a step ended",
    "TRC005": "whether a step ended",
    "STV023": "the time of a fatal line, which only a line with a clock has",
}
"""Rules without the need whose source names a duration, and what they read of it."""


def found(fault: LeastFault, tables: dict[str, Any]) -> list[tuple[Any, ...]]:
    """What a rule finds in rows without a clock, but for where in time."""
    given: dict[str, Any] = {**tables, **fault.manifest, "clock": NO_CLOCK}
    return sorted(
        (str(each.step), str(each.request), each.message, str(each.evidence), each.count)
        for each in check(trace_of(**given), (fault.rule,)).findings
    )


@slow
@looped("fault", LEAST_FAULTS, ids=str)
def test_without_a_clock_a_rule_finds_the_same_whatever_the_times_are(fault: LeastFault) -> None:
    assert all(
        found(fault, warped(fault.tables, warp)) == found(fault, fault.tables) for warp in WARPS
    )


@looped("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_that_reads_a_duration_names_the_clock_as_a_need(rule: Rule) -> None:
    source = inspect.getsource(sys.modules[type(rule).__module__])
    code = source.replace(sys.modules[type(rule).__module__].__doc__ or "", "")
    says = CLOCK in rule.needs or "clock.has_times" in code or rule.code in READS_THEM_AS_ORDER

    assert says or not READS_DURATIONS.search(code), "add CLOCK to its needs"


def test_a_rule_that_compares_durations_is_not_applicable_and_says_that_a_clock_is_missing() -> (
    None
):
    faults = [fault for fault in LEAST_FAULTS if CLOCK in fault.rule.needs]

    assert len(faults) > 30
    for fault in faults:
        given: dict[str, Any] = {**fault.tables, **fault.manifest, "clock": NO_CLOCK}
        result = check(trace_of(**given), (fault.rule,))
        assert CLOCK in result.lacking[fault.rule.code]
        assert "1 compare durations, and the trace has no clock" in result.coverage.share
