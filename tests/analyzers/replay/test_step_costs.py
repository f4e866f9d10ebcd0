from __future__ import annotations

import random

import polars as pl
import pytest

from stepscope import Trace
from stepscope.analyzers.replay.step_costs import FittedCosts, fit_costs
from stepscope.app.replay.what_came import costs_line
from stepscope.ingest.manifest import Manifest
from tests.conftest import ROOT


def fitted(noise: float, *, num_steps: int = 400, slow_from: int | None = None) -> FittedCosts:
    """Costs of steps of 1 ms and 50 µs a decode, each up to a share longer or shorter.

    From the step `slow_from` on everything takes five times as long.
    """
    draw = random.Random(5)
    steps, rows = [], []
    for step in range(num_steps):
        decodes = 1 + (step // 50 if slow_from is None else step * 3 % 8)
        took = (1_000_000 + 50_000 * decodes) * (1 + noise * (2 * draw.random() - 1))
        took *= 5 if slow_from is not None and step >= slow_from else 1
        steps.append({"rank": 0, "step": step, "ts_ns": step * 10**8, "dur_ns": round(took),
                      "kind": "decode", "num_running": decodes})  # fmt: skip
        rows += [{"rank": 0, "step": step, "ts_ns": step * 10**8, "request": f"r{number}",
                  "phase": "decode", "num_tokens": 1, "num_computed": 10}
                 for number in range(decodes)]  # fmt: skip
    frames = {"steps": pl.LazyFrame(steps), "batch_rows": pl.LazyFrame(rows)}
    found = fit_costs(Trace.from_tables(frames, Manifest("vllm")), 0)
    assert found is not None
    return found


def test_steps_that_take_what_the_model_says_have_no_error_and_no_noise() -> None:
    found = fitted(0.0)

    assert found.p90_error < 0.001
    assert found.noise == pytest.approx(0.0, abs=1e-6)


def test_a_machine_that_has_become_slower_is_foreseen_at_the_pace_of_that_time() -> None:
    found = fitted(0.05, slow_from=130)

    assert found.median_error < 0.05
    assert abs(found.total_error) < 0.05
    before, after = (found.costs.step_ns(0, 3, 33, began_ns=step * 10**8) for step in (60, 300))
    assert after / before == pytest.approx(5, rel=0.1)
    assert "times as long as the machine's pace changed" in costs_line(found)


def test_noise_is_told_apart_from_the_error_of_the_model() -> None:
    found = fitted(0.4)

    assert found.noise is not None
    assert found.median_error == pytest.approx(0.2, abs=0.06)
    assert found.noise == pytest.approx(0.25, abs=0.08)
    assert abs(found.total_error) < 0.06
    assert f"with the same decodes differ by {found.noise:.1%} in the median" in costs_line(found)


def test_the_steps_of_a_recorded_run_on_a_quiet_machine_are_foreseen() -> None:
    found = fit_costs(Trace.open(ROOT / "sample_traces" / "vllm_crowd.trace"), 0)

    assert found is not None
    assert found.median_error < 0.05
    assert abs(found.total_error) < 0.02


def test_too_few_steps_are_fitted_no_model() -> None:
    with pytest.raises(AssertionError):
        fitted(0.0, num_steps=19)
