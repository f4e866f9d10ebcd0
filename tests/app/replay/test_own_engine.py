from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Severity
from stepscope.app.replay.own_engine import rerun, rerun_lines
from stepscope.engine.executors.simulated import CostModel
from stepscope.engine.runs.rerun import Changes
from stepscope.engine.runs.scenario import Options
from stepscope.engine.scenarios import scenario
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.replays import SMALL, Run, differences, runs

FIXED = (
    ("mix-admission", "COR001"),
    ("fcfs-preemption", "STV001"),
    ("slot-recycling", "KVB006"),
    ("ep-multiplexing", "BAT012"),
    ("mixed-batches", "BAT001"),
    ("waiting-queue", "KVB008"),
)


def loud(trace: Trace) -> list[str]:
    """Findings that are more than a note."""
    return [each.code for each in check(trace).findings if each.severity is not Severity.INFO]


def lasted(trace: Trace) -> int:
    """From the first step to the last, in nanoseconds."""
    begun = trace.steps.collect()["ts_ns"]
    return int(begun[-1] - begun[0])


def few() -> list[Run]:
    """Every variant, and one fault of each scenario; `make replays` has them all."""
    every = list(runs(SMALL))
    faulty = {run.scenario: run for run in every if run.fault and not run.needs_torch}
    return [*(run for run in every if not run.fault), *faulty.values()]


@pytest.mark.parametrize("run", few(), ids=str)
def test_a_run_is_the_same_again_from_what_is_in_its_trace(run: Run, tmp_path: Path) -> None:
    assert differences(run, tmp_path) == []


def test_decisions_on_a_real_clock_are_the_same_again(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    settings = {"requests": "4", "layers": "1", "max_tokens": "6"}

    assert (
        differences(
            Run("mixed-batches", "before", Options(executor="torch", settings=settings)), tmp_path
        )
        == []
    )


@pytest.mark.parametrize(("name", "code"), FIXED)
def test_with_the_fix_all_that_was_found_vanishes(name: str, code: str, tmp_path: Path) -> None:
    scenario(name).record("before", tmp_path / "before.trace")
    before = Trace.open(tmp_path / "before.trace")

    found = rerun(before, Changes("after"), tmp_path / "after.trace")

    assert check(before).counts[code]
    assert loud(found.replayed) == []


def test_without_its_fault_a_run_is_clean(tmp_path: Path) -> None:
    options = Options(faults=frozenset({"one-slot-used"}))
    scenario("slot-recycling").record("after", tmp_path / "faulty.trace", options)
    faulty = Trace.open(tmp_path / "faulty.trace")

    found = rerun(faulty, Changes(without=("one-slot-used",)), tmp_path / "mended.trace")

    assert check(faulty).counts["STV006"]
    assert loud(found.replayed) == []
    assert "replayed  without fault one-slot-used" in list(rerun_lines(found))


def test_what_a_step_costs_can_be_changed(tmp_path: Path) -> None:
    scenario("fcfs-preemption").record("after", tmp_path / "a.trace", Options())
    recorded = Trace.open(tmp_path / "a.trace")
    slow = CostModel(base_ns=10**9)

    found = rerun(recorded, Changes(cost=slow), tmp_path / "slow.trace")
    again = rerun(found.replayed, Changes(), tmp_path / "again.trace")

    assert lasted(found.replayed) > 2 * lasted(recorded)
    assert again.different == ()


def test_a_file_that_is_missing_or_other_is_named(tmp_path: Path) -> None:
    scenario("slot-recycling").record("after", tmp_path / "a.trace", Options())
    recorded = Trace.open(tmp_path / "a.trace")
    (tmp_path / "a.trace" / "notes.txt").write_text("mine")
    lifecycle = next((tmp_path / "a.trace").rglob("lifecycle/**/*.parquet"))

    found = rerun(recorded, Changes(), tmp_path / "b.trace")
    lifecycle.write_bytes(lifecycle.read_bytes() + b"x")
    other = rerun(recorded, Changes(), tmp_path / "c.trace")

    assert found.different == ("notes.txt",)
    assert other.different is not None
    assert len(other.different) == 2


def test_an_unknown_variant_is_refused_with_the_nearest(tmp_path: Path) -> None:
    scenario("slot-recycling").record("after", tmp_path / "a.trace", Options())

    with pytest.raises(ConfigError, match="befor"):
        rerun(Trace.open(tmp_path / "a.trace"), Changes("befor"), tmp_path / "b.trace")
