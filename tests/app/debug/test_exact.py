"""Variants that no other test walks through: the state at every step is what the engine held."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.app.debug import Session
from stepscope.engine.executors.kinds import executor_kind
from stepscope.engine.scenarios import Options, scenario
from tests.app.debug.exact import all_runs, differences, named, needs_torch
from tests.app.debug.test_state import Truth, recorded
from tests.looped import looped
from tests.replays import SMALL
from tests.tiers import sampled

VARIANTS: dict[str, tuple[str, ...]] = {
    "fcfs-preemption": ("order-only", "defer-only"),
    "slot-recycling": ("host-mirror", "device-write"),
    "mix-admission": (
        "aic-free", "all-free", "all-idle-or-pending", "uniform", "per-core-slot", "barrier",
        "reserve-group",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "run",
    sampled(
        [f"{name} {each}" for name, known in VARIANTS.items() for each in known],
        ["fcfs-preemption order-only", "mix-admission barrier"],
    ),
)
def test_the_state_at_every_step_is_what_the_engine_held_and_what_the_step_counted(
    tmp_path: Path, run: str
) -> None:
    name, variant = run.split()
    recording = recorded(name, variant, tmp_path / "run.trace", dict(SMALL.get(name, {})))
    session = Session(recording.trace)

    for snapshot in recording.truth.of_steps():
        session.goto(step=snapshot["step"])
        assert session.state.as_dict() == snapshot
    assert session.verify() == []


@looped("executor", ["simulated", "gloo"])
def test_the_other_ranks_of_a_run_are_compared_too(tmp_path: Path, executor: str) -> None:
    if executor_kind(executor).needs_torch:
        pytest.importorskip("torch")
    truth = Truth()
    options = Options(settings=SMALL["ep-multiplexing"], observer=truth, executor=executor)
    scenario("ep-multiplexing").record("after", tmp_path / "run.trace", options)

    assert {rank: len(other.of_steps()) > 0 for rank, other in truth.others.items()} == {1: True}


OTHERS = {
    "fcfs-preemption after with block-given-twice",
    "fcfs-preemption after with victim-popped-instead-of-admitted",
    "fcfs-preemption after with executor-dies",
    "slot-recycling after (torch)",
    "slot-recycling after with masked-row-leak",
    "mix-admission after with deferred-completion-lost",
    "mixed-batches flag-off (simulated)",
    "mixed-batches before (torch)",
    "mixed-batches mtp (torch)",
    "mixed-batches data-parallel (simulated)",
    "waiting-queue before (simulated)",
    "waiting-queue after with passed-without-bound",
    "ep-multiplexing before (expert-parallel)",
    "ep-multiplexing after (simulated)",
    "ep-multiplexing after (gloo)",
    "ep-multiplexing after with compaction-on-one-side",
    "ep-multiplexing after with slots-not-allocated",
}
"""Runs of each scenario and executor; `make exact` has them all."""


QUICK = {
    "fcfs-preemption after with block-given-twice",
    "mix-admission after with deferred-completion-lost",
    "mixed-batches mtp (torch)",
    "waiting-queue after with passed-without-bound",
    "ep-multiplexing after (simulated)",
}
"""One of each scenario that test_state has none of in the quick tier, and a few faults."""
COMPARED = {named(run): run for run in all_runs(SMALL) if named(run) in OTHERS}


@pytest.mark.parametrize("name", sampled(COMPARED, QUICK))
def test_every_executor_and_a_few_faults_are_at_every_step_what_the_engine_held(
    name: str, tmp_path: Path
) -> None:
    run = COMPARED[name]
    if needs_torch(run):
        pytest.importorskip("torch")

    assert differences(run, tmp_path) == []
