from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from shutil import copytree

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Severity
from stepscope.app.replay.own_engine import rerun, rerun_lines
from stepscope.engine.executors.simulated import CostModel
from stepscope.engine.runs.rerun import Changes
from stepscope.engine.runs.scenario import Options
from stepscope.engine.scenarios import SCENARIOS
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.engine.recorded_once import RecordedOnce
from tests.replays import SMALL, Run, differences, differences_from, runs
from tests.tiers import slow

NAMES = [of.name for of in SCENARIOS]

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


def few(name: str) -> list[Run]:
    """A variant and a fault of a scenario; `make replays` has them all."""
    every = [run for run in runs(SMALL) if run.scenario == name and not run.needs_torch]
    return [
        next(run for run in every if not run.fault),
        next(run for run in reversed(every) if run.fault),
    ]


def changed(
    recorded_once: RecordedOnce, folder: Path, every: Iterable[Run]
) -> dict[str, list[str]]:
    """What differs in runs that are run again from what is in their trace."""
    found = {}
    for number, run in enumerate(every):
        trace = recorded_once.trace(run.scenario, run.variant, run.options)
        (folder / str(number)).mkdir()
        if different := differences_from(trace, folder / str(number)):
            found[str(run)] = different
    return found


@slow
@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_the_same_again_from_what_is_in_its_trace(
    name: str, recorded_once: RecordedOnce, tmp_path: Path
) -> None:
    assert changed(recorded_once, tmp_path, few(name)) == {}


@slow
@pytest.mark.parametrize("name", NAMES)
def test_every_variant_is_the_same_again_from_what_is_in_its_trace(
    name: str, recorded_once: RecordedOnce, tmp_path: Path
) -> None:
    every = [run for run in runs(SMALL) if run.scenario == name and not run.fault]

    assert changed(recorded_once, tmp_path, every) == {}


@slow
def test_decisions_on_a_real_clock_are_the_same_again(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    settings = {"requests": "4", "layers": "1", "max_tokens": "6"}

    assert (
        differences(
            Run("mixed-batches", "before", Options(executor="torch", settings=settings)), tmp_path
        )
        == []
    )


@slow
@pytest.mark.parametrize(
    ("name", "code"), [*FIXED[:2], *(pytest.param(*fixed, marks=slow) for fixed in FIXED[2:])]
)
def test_with_the_fix_all_that_was_found_vanishes(
    name: str, code: str, recorded_once: RecordedOnce, tmp_path: Path
) -> None:
    before = recorded_once.trace(name, "before")

    found = rerun(before, Changes("after"), tmp_path / "after.trace")

    assert check(before).counts[code]
    assert loud(found.replayed) == []


def test_without_its_fault_a_run_is_clean(recorded_once: RecordedOnce, tmp_path: Path) -> None:
    options = Options(faults=frozenset({"one-slot-used"}))
    faulty = recorded_once.trace("slot-recycling", "after", options)

    found = rerun(faulty, Changes(without=("one-slot-used",)), tmp_path / "mended.trace")

    assert check(faulty).counts["STV006"]
    assert loud(found.replayed) == []
    assert "replayed  without fault one-slot-used" in list(rerun_lines(found))


@slow
def test_what_a_step_costs_can_be_changed(recorded_once: RecordedOnce, tmp_path: Path) -> None:
    recorded = recorded_once.trace("fcfs-preemption", "after")
    slow = CostModel(base_ns=10**9)

    found = rerun(recorded, Changes(cost=slow), tmp_path / "slow.trace")
    again = rerun(found.replayed, Changes(), tmp_path / "again.trace")

    assert lasted(found.replayed) > 2 * lasted(recorded)
    assert again.different == ()


def test_a_file_that_is_missing_or_other_is_named(
    recorded_once: RecordedOnce, tmp_path: Path
) -> None:
    path = recorded_once.run("slot-recycling", "after").path
    assert path is not None
    copytree(path, tmp_path / "a.trace")
    recorded = Trace.open(tmp_path / "a.trace")
    (tmp_path / "a.trace" / "notes.txt").write_text("mine")
    lifecycle = next((tmp_path / "a.trace").rglob("lifecycle/**/*.parquet"))

    found = rerun(recorded, Changes(), tmp_path / "b.trace")
    lifecycle.write_bytes(lifecycle.read_bytes() + b"x")
    other = rerun(recorded, Changes(), tmp_path / "c.trace")

    assert found.different == ("notes.txt",)
    assert other.different is not None
    assert len(other.different) == 2


def test_an_unknown_variant_is_refused_with_the_nearest(
    recorded_once: RecordedOnce, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="befor"):
        rerun(
            recorded_once.trace("slot-recycling", "after"), Changes("befor"), tmp_path / "b.trace"
        )
