"""Every fault fires its own rules and no other error; every clean variant is silent."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Severity
from stepscope.engine.executors.kinds import executor_kind
from stepscope.engine.faults import FAULTS, Fault
from stepscope.engine.scenarios import SCENARIOS, Options
from tests.engine.recorded_once import RecordedOnce
from tests.matrix import CLEAN, EXPECTED, FIRES, of_trace, table
from tests.tiers import sampled, slow

QUICK = ("fcfs-preemption", "mix-admission")
"""A scenario with queues and one with core groups."""


@slow
@pytest.mark.parametrize("name", sampled([each.name for each in SCENARIOS], QUICK))
def test_a_fault_fires_its_own_rules_and_no_other_error(
    name: str, recorded_once: RecordedOnce
) -> None:
    fired, expected = {}, {}
    for fault in FAULTS:
        if fault.scenario != name or lacks_torch(fault):
            continue
        options = Options(faults=frozenset({fault.name}))
        cell = of_trace(fault, recorded_once.trace(name, fault.variant, options))
        own = set(FIRES[fault.name])
        others = set(cell.errors) - own
        fired[fault.name] = own & {*cell.errors, *cell.warnings, *cell.notes}, others
        expected[fault.name] = own, set(EXPECTED.get(fault.name, {}))
        assert fault.name in table([cell])

    assert fired == expected


def lacks_torch(fault: Fault) -> bool:
    needs_torch = fault.executor is not None and executor_kind(fault.executor).needs_torch
    return needs_torch and find_spec("torch") is None


@slow
@pytest.mark.parametrize("scenario", sampled([each.name for each in SCENARIOS], QUICK))
def test_a_clean_variant_is_silent_at_error_and_warning(
    recorded_once: RecordedOnce, scenario: str
) -> None:
    loud = {}
    for name, variant in CLEAN:
        if name == scenario:
            findings = check(recorded_once.trace(name, variant)).findings
            loud[variant] = [
                f"{each.code}: {each.message}"
                for each in findings
                if each.severity is not Severity.INFO
            ]

    assert loud
    assert {variant: messages for variant, messages in loud.items() if messages} == {}


def test_every_fault_has_a_rule_of_its_own_and_every_scenario_a_clean_variant() -> None:
    assert {fault.name for fault in FAULTS} == set(FIRES)
    assert all(FIRES.values())
    assert {name for name, _ in CLEAN} == {each.name for each in SCENARIOS}
    named = {code for own in FIRES.values() for code in own}
    assert named <= {rule.code for rule in RULES}
