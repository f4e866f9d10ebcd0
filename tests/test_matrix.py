"""Every fault fires its own rules and no other error; every clean variant is silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Severity
from stepscope.engine.executors.kinds import executor_kind
from stepscope.engine.faults import FAULTS, Fault
from stepscope.engine.scenarios import SCENARIOS
from tests.engine.recorded_once import RecordedOnce
from tests.matrix import CLEAN, EXPECTED, FIRES, of_fault, table


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_fires_its_own_rules_and_no_other_error(tmp_path: Path, fault: Fault) -> None:
    if fault.executor and executor_kind(fault.executor).needs_torch:
        pytest.importorskip("torch")
    cell = of_fault(fault, tmp_path)

    own = set(FIRES[fault.name])
    assert own <= {*cell.errors, *cell.warnings, *cell.notes}
    assert set(cell.errors) - own == set(EXPECTED.get(fault.name, {}))
    assert fault.name in table([cell])


@pytest.mark.parametrize(("name", "variant"), CLEAN, ids=" ".join)
def test_a_clean_variant_is_silent_at_error_and_warning(
    recorded_once: RecordedOnce, name: str, variant: str
) -> None:
    result = check(recorded_once.trace(name, variant))

    loud = [each for each in result.findings if each.severity is not Severity.INFO]
    assert [f"{each.code}: {each.message}" for each in loud] == []


def test_every_fault_has_a_rule_of_its_own_and_every_scenario_a_clean_variant() -> None:
    assert {fault.name for fault in FAULTS} == set(FIRES)
    assert all(FIRES.values())
    assert {name for name, _ in CLEAN} == {each.name for each in SCENARIOS}
    named = {code for own in FIRES.values() for code in own}
    assert named <= {rule.code for rule in RULES}
