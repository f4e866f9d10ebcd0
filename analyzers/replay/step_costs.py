"""What a step takes, fitted to a trace: a base, tokens of prefill, rows of decode, context.

Least squares over the steps, of which every fifth is held out and tells the error. Steps that took
unlike all others (a kernel compiled, another program had the CPU) are left out of the fit, never
of the error.

A machine is not as fast at all times: another rank computes, a step waits for another rank, a
program has the CPU. What steps around a time took of what the model says of them, in the median, is
the pace of that time. It is told by the fitted steps alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from stepscope.ingest.replay.script import StepCosts
from stepscope.ingest.trace import Trace

HELD_OUT = 5
MOST_UNLIKE = 50.0
"""A residual of so many times the median one is no residual of this model. No fewer: what takes
long now and then is a part of what steps take in sum."""
FEWEST = 20
NEAR = 9
"""So many fitted steps tell the pace of a time; fewer are noise, more miss how it changes."""
FEATURES = ("prefill_tokens", "decode_rows", "context")


@dataclass(frozen=True, slots=True)
class FittedCosts:
    """Costs and how far off they are: relative errors of the steps that were held out.

    `left_out` of the `num_steps` steps that were fitted took unlike all others. `noise` is by how
    much two steps differ in the median that follow each other with the same decodes and nothing
    else: what no model of a batch can tell. None where there are too few of these.
    """

    costs: StepCosts
    num_steps: int
    left_out: int
    num_held_out: int
    median_error: float
    p90_error: float
    total_error: float
    noise: float | None


def fit_costs(trace: Trace, rank: int) -> FittedCosts | None:
    """Fit the costs to the steps of a rank; None where there are too few that tell."""
    steps = _steps(trace, rank)
    if len(steps) < FEWEST:
        return None
    took = steps["dur_ns"].to_numpy().astype(float)
    given = _given(steps)
    is_held = np.arange(len(took)) % HELD_OUT == HELD_OUT - 1
    weights, left_out = fit(given[~is_held], took[~is_held])
    pace = _pace(given[~is_held] @ weights, took[~is_held])
    began = steps["ts_ns"].to_numpy()
    base, prefill, decode, context = (float(each) for each in weights)
    at_pace = tuple(zip(began[~is_held].tolist(), pace.tolist(), strict=True))
    costs = StepCosts(base, prefill, decode, context, _gap_ns(trace, rank), at_pace)
    foreseen = _foreseen(costs, given[is_held], began[is_held])
    errors = np.abs(foreseen - took[is_held]) / took[is_held]
    return FittedCosts(
        costs, int((~is_held).sum()), left_out, int(is_held.sum()),
        float(np.median(errors)), float(np.quantile(errors, 0.9)),
        float(foreseen.sum() / took[is_held].sum() - 1), _noise(steps),
    )  # fmt: skip


def _foreseen(costs: StepCosts, given: np.ndarray, began: np.ndarray) -> np.ndarray:
    """What a replay would take each step to take."""
    return np.array([
        costs.step_ns(int(prefill), int(decodes), int(context), int(ts_ns))
        for (_, prefill, decodes, context), ts_ns in zip(given, began, strict=True)
    ])  # fmt: skip


def fit(given: np.ndarray, took: np.ndarray) -> tuple[np.ndarray, int]:
    """Weights of no less than nothing, and how many rows were left out as unlike all others."""
    keep = np.ones(len(took), dtype=bool)
    weights = _not_negative(given, took)
    for _ in range(5):
        residual = np.abs(given @ weights - took)
        unlike = residual > MOST_UNLIKE * max(float(np.median(residual[keep])), 1.0)
        if (unlike == ~keep).all():
            break
        keep = ~unlike
        weights = _not_negative(given[keep], took[keep])
    return weights, int((~keep).sum())


def _not_negative(given: np.ndarray, took: np.ndarray) -> np.ndarray:
    """Least squares without a weight below 0: the worst of these is taken out, and so on."""
    used = list(range(given.shape[1]))
    scale = np.maximum(np.abs(given).max(axis=0), 1e-12)
    while used:
        found, *_ = np.linalg.lstsq(given[:, used] / scale[used], took, rcond=None)
        if found.min() >= 0:
            break
        used.pop(int(np.argmin(found)))
    weights = np.zeros(given.shape[1])
    if used:
        weights[used] = found / scale[used]
    return weights


def _pace(foreseen: np.ndarray, took: np.ndarray) -> np.ndarray:
    """By what factor the steps around each took longer than is foreseen, in the median."""
    ratio = took / np.maximum(foreseen, 1.0)
    near = min(NEAR, len(ratio))
    windows = np.lib.stride_tricks.sliding_window_view(ratio, near)
    middle = np.arange(len(ratio)) - near // 2
    found: np.ndarray = np.median(windows, axis=1)[np.clip(middle, 0, len(windows) - 1)]
    return found


def _noise(steps: pl.DataFrame) -> float | None:
    decodes = pl.col("decode_rows")
    goes_on = (decodes == decodes.shift(1)) & (pl.col("prefill_tokens") == 0)
    goes_on &= pl.col("prefill_tokens").shift(1) == 0
    took = pl.col("dur_ns")
    off = steps.select(((took - took.shift(1)).abs() / took).filter(goes_on)).to_series()
    found = off.median() if len(off) >= FEWEST else None
    return float(found) if isinstance(found, float) else None


def _given(steps: pl.DataFrame) -> np.ndarray:
    return np.column_stack(
        [np.ones(len(steps)), *(steps[name].to_numpy().astype(float) for name in FEATURES)]
    )


def _steps(trace: Trace, rank: int) -> pl.DataFrame:
    """step, ts_ns, dur_ns and what it computed, of the steps that computed something and ended."""
    is_prefill = pl.col("phase") == "prefill"
    computed = (
        trace.batch_rows.filter(pl.col("rank") == rank)
        .group_by("step")
        .agg(
            prefill_tokens=pl.col("num_tokens").filter(is_prefill).sum(),
            decode_rows=(~is_prefill).sum(),
            context=(pl.col("num_computed").fill_null(0) + pl.col("num_tokens")).sum(),
        )
    )
    steps = trace.steps.filter((pl.col("rank") == rank) & (pl.col("dur_ns") > 0))
    return steps.select("step", "ts_ns", "dur_ns").join(computed, on="step").sort("step").collect()


def _gap_ns(trace: Trace, rank: int) -> float:
    """The time between the end of a step and the beginning of the next one of a busy engine."""
    steps = trace.steps.filter((pl.col("rank") == rank) & (pl.col("num_running") > 0)).sort("step")
    after = pl.col("ts_ns").shift(-1) - pl.col("ts_ns") - pl.col("dur_ns")
    gap = steps.select(after.filter(after >= 0).median()).collect().item()
    return float(gap or 0.0)
