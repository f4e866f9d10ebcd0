"""The seam of executors: scenarios name those of the tuple, and what these can do is true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepscope.engine.executors.kinds import EXECUTORS, ExecutorKind, executor_kind
from stepscope.engine.executors.simulated import CostModel
from stepscope.engine.runs.scenario import Options, Scenario, settled
from stepscope.engine.scenarios import SCENARIOS
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.engine.asked import SMALL
from tests.tiers import slow

PAIRS = [(scenario, executor_kind(name)) for scenario in SCENARIOS for name in scenario.executors]
each_pair = pytest.mark.parametrize(
    ("scenario", "kind"), PAIRS, ids=lambda each: str(getattr(each, "name", each))
)


def test_every_executor_is_what_some_scenario_runs_on() -> None:
    assert {kind for _, kind in PAIRS} == set(EXECUTORS)


@slow
@pytest.mark.parametrize(
    ("scenario", "kind"),
    [
        pytest.param(*pair, marks=[slow] if pair[1].name == "gloo" else [])  # it has its own tests
        for pair in PAIRS
    ],
    ids=lambda each: str(getattr(each, "name", each)),
)
def test_every_scenario_records_on_each_of_its_executors(
    scenario: Scenario, kind: ExecutorKind, tmp_path: Path
) -> None:
    if kind.needs_torch:
        pytest.importorskip("torch")
    options = Options(settings=SMALL[scenario.name], executor=kind.name)

    scenario.record("after", tmp_path / "run.trace", options)

    trace = Trace.open(tmp_path / "run.trace")
    assert trace.has("steps")
    assert (trace.manifest.clock.kind != "virtual") == kind.is_real_time


@each_pair
def test_costs_and_profiles_are_taken_where_there_are_such(
    scenario: Scenario, kind: ExecutorKind
) -> None:
    def is_taken(**asked: Any) -> bool:
        try:
            settled(scenario, "after", Options(executor=kind.name, **asked))
        except ConfigError:
            return False
        return True

    assert is_taken(cost=CostModel()) == kind.is_priced
    assert is_taken(profile=True) == kind.has_profiler
