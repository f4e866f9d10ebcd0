"""Variants that no other test walks through: the state at every step is what the engine held."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.app.debug import Session
from tests.app.debug.test_state import recorded

VARIANTS = {
    "fcfs-preemption": ("order-only", "defer-only"),
    "slot-recycling": ("host-mirror", "device-write"),
    "mix-admission": (
        "aic-free", "all-free", "all-idle-or-pending", "uniform", "per-core-slot", "barrier",
        "reserve-group",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "variant"), [(name, each) for name, known in VARIANTS.items() for each in known]
)
def test_the_state_at_every_step_is_what_the_engine_held_and_what_the_step_counted(
    tmp_path: Path, name: str, variant: str
) -> None:
    run = recorded(name, variant, tmp_path / "run.trace")
    session = Session(run.trace)

    for snapshot in run.truth.of_steps():
        session.goto(step=snapshot["step"])
        assert session.state.as_dict() == snapshot
    assert session.verify() == []
