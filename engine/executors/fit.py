"""What steps cost, learned from a trace: the prices of `CostModel` that explain its steps best.

A step's duration is taken to be `base + prefill tokens + decode rows + KV tokens`, each at a price
that is not below nothing (non-negative least squares). The first steps of a real engine compile and
warm up, and others are held up by something else, so the prices are found in two turns: least
absolute deviations, which a few absurd steps do not move, tell which steps are `5` deviations off;
least squares over the others give the prices.

KV tokens are known where the trace tells of each row of a batch; where it does not, their price is
0 and is part of the others. So is that of a segment more, which has what it takes to wait for the
device in it, where no step runs in segments.

A step takes until the last of what it launched has ended, and from then on where the step before it
has: with asynchronous scheduling the CPU is in the next step while the GPU executes this one, and
that time is not paid twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stepscope.engine.executors.simulated import CostModel
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace

Floats = NDArray[np.float64]
_FEATURES = ("base", "num_prefill_tokens", "num_decode_reqs", "num_kv_tokens", "num_more_segments")
_TURNS = 30
_BAD, _MOST = 0.2, 0.75
_FAR = 5.0  # deviations, each 1.4826 medians of the absolute residual, as in a normal distribution


@dataclass(frozen=True, slots=True)
class Fit:
    """A cost model and how well it explains the steps that it was fitted to.

    `r_squared` and the residuals are those of the steps that were kept; `num_outliers` were not.
    `doubts` say why the prices may be wrong, in a line each.
    """

    cost: CostModel
    num_steps: int
    num_outliers: int
    r_squared: float
    median_residual_ns: int
    max_residual_ns: int
    has_kv_tokens: bool
    doubts: tuple[str, ...] = ()

    def __str__(self) -> str:
        cost = self.cost
        kv = f" + {cost.kv_token_ns} ns a KV token" if self.has_kv_tokens else ""
        body = f" + {cost.body_ns / 1e3:.3f} us a segment more" if cost.body_ns else ""
        return (
            f"{cost.base_ns / 1e6:.3f} ms a step + {cost.prefill_token_ns / 1e3:.3f} us a prompt "
            f"token + {cost.decode_row_ns / 1e3:.3f} us a decode row{kv}{body}, from "
            f"{self.num_steps - self.num_outliers} of {self.num_steps} steps (R2 "
            f"{self.r_squared:.3f}, half of them within {self.median_residual_ns / 1e3:.1f} us)"
        )


def fit(trace: Trace) -> Fit:
    """Return the costs that explain the steps of `trace`; ConfigError where it times too few."""
    steps, has_kv_tokens = _steps(trace)
    if steps.is_empty():
        raise ConfigError(
            "no step of the trace says how long it took and what was in it",
            where=trace.name, todo="fit costs to another trace",
        )  # fmt: skip
    if len(steps) == 1:
        raise ConfigError(
            "the trace times one step, which does not tell what each part of a step costs",
            where=trace.name, todo="fit costs to a trace with steps of several sizes",
        )  # fmt: skip
    work = steps.select(_FEATURES).to_numpy().astype(np.float64)
    took_ns = steps["took_ns"].to_numpy().astype(np.float64)
    fitted = _fitted(work, took_ns)
    prices = _least_squares(work[fitted], took_ns[fitted])
    residuals = np.abs(took_ns - work @ prices)[fitted]
    return Fit(
        CostModel(*(round(price) for price in prices.tolist())),
        len(took_ns),
        int((~fitted).sum()),
        _r_squared(took_ns[fitted], residuals),
        round(float(np.median(residuals))),
        round(float(residuals.max())),
        has_kv_tokens,
        tuple(_doubts(steps, work[fitted], took_ns[fitted], prices, residuals)),
    )


def _doubts(
    steps: pl.DataFrame, work: Floats, took_ns: Floats, prices: Floats, residuals: Floats
) -> Iterator[str]:
    num_sizes, num_prices = len(np.unique(work, axis=0)), int((prices > 0).sum())
    if num_sizes <= num_prices:
        sizes = "steps of one size set" if num_sizes == 1 else f"steps of {num_sizes} sizes set"
        yield f"{sizes} {num_prices} of the prices: none is left to check them by"
    half, usual = float(np.median(residuals)), float(np.median(took_ns))
    if half > _BAD * usual:
        yield (
            f"the prices explain little: half of the steps are off by {half / 1e6:.3f} ms or more, "
            f"and take {usual / 1e6:.3f} ms"
        )
    if len(work) < _MOST * len(steps):
        yield f"{len(steps) - len(work)} of {len(steps)} steps are too far off to count"
    if unseen := int((steps["cpu_dur_ns"].is_not_null() & steps["gpu_ts_ns"].is_null()).sum()):
        yield f"of {unseen} of {len(steps)} steps only the time of the CPU is known"


def _steps(trace: Trace) -> tuple[pl.DataFrame, bool]:
    """Steps that were timed and computed something, and whether their KV tokens are known."""
    kv_tokens = trace.batch_rows.group_by("rank", "step").agg(
        num_kv_tokens=(pl.col("num_computed") + pl.col("num_tokens")).sum(),
        is_known=pl.col("num_computed").is_not_null().all(),
    )
    segments = trace.segments.group_by("rank", "step").agg(num_more_segments=pl.len() - 1)
    computed = pl.col("took_ns") > 0, ~pl.col("kind").is_in(["idle", "dummy"])
    steps = (
        _timed(trace)
        .filter(*computed)
        .drop_nulls(["num_prefill_tokens", "num_decode_reqs"])
        .join(kv_tokens, on=["rank", "step"], how="left")
        .join(segments, on=["rank", "step"], how="left")
        .with_columns(pl.lit(1).alias("base"), pl.col("num_more_segments").fill_null(0))
        .sort("rank", "step")
        .collect()
    )
    is_known = bool(steps.height and steps["is_known"].fill_null(value=False).all())
    if not is_known:
        steps = steps.with_columns(num_kv_tokens=pl.lit(0))
    return steps, is_known


def _timed(trace: Trace) -> pl.LazyFrame:
    """Steps with what each took beyond the end of those before it."""
    end_ns = pl.col("ts_ns") + pl.col("dur_ns")
    ended_ns = end_ns.cum_max().shift(1).over("rank").fill_null(pl.col("ts_ns"))
    took_ns = end_ns - pl.max_horizontal("ts_ns", ended_ns)
    return trace.steps.sort("rank", "ts_ns", "step").with_columns(took_ns=took_ns)


def _fitted(work: Floats, took_ns: Floats) -> NDArray[np.bool_]:
    """Which steps lie near the prices that least absolute deviations give."""
    weights = np.ones_like(took_ns)
    floor_ns = max(1.0, 1e-6 * float(np.median(took_ns)))
    residuals = took_ns
    for _ in range(_TURNS):
        scale = np.sqrt(weights)
        prices = _least_squares(work * scale[:, None], took_ns * scale)
        residuals = np.abs(took_ns - work @ prices)
        weights = 1 / np.maximum(residuals, floor_ns)
    deviation = 1.4826 * float(np.median(residuals))
    return residuals <= max(_FAR * deviation, floor_ns)


def _least_squares(work: Floats, took_ns: Floats) -> Floats:
    """Non-negative least squares, by trying which prices are above nothing: there are few.

    Of two choices that explain the steps as well, the one with fewer prices is taken.
    """
    scale = np.sqrt((work**2).sum(axis=0))
    used = [column for column in range(work.shape[1]) if scale[column] > 0]
    rows = np.column_stack([work[:, used] / scale[used], took_ns])
    corner = np.asarray(np.linalg.qr(rows, mode="r"))
    best, prices = np.inf, np.zeros(work.shape[1])
    for num_prices in range(1, len(used) + 1):
        for chosen in map(list, combinations(range(len(used)), num_prices)):
            found = np.linalg.lstsq(corner[:, chosen], corner[:, -1], rcond=None)[0]
            error = float(np.linalg.norm(corner[:, -1] - corner[:, chosen] @ found))
            if found.min() >= 0 and error < best * (1 - 1e-9):
                best, prices = error, _spread(found, [used[i] for i in chosen], scale)
    return prices


def _spread(found: Floats, columns: Sequence[int], scale: Floats) -> Floats:
    prices = np.zeros(len(scale))
    prices[columns] = found / scale[columns]
    return prices


def _r_squared(took_ns: Floats, residuals: Floats) -> float:
    around_mean = float(((took_ns - took_ns.mean()) ** 2).sum())
    return 1 - float((residuals**2).sum()) / around_mean if around_mean else 1.0
