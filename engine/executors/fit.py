"""What steps cost, learned from a trace: the prices of `CostModel` that explain its steps best.

A step's duration is taken to be `base + prefill tokens + decode rows or tokens + KV tokens`, each
at a price that is not below nothing (non-negative least squares). Real engines warm up in the first
step, and many compile or plan something in the first step with a number of tokens: both have a
price of their own. Other steps are held up by something else, so the prices are found in two turns:
least absolute deviations, which a few absurd steps do not move, tell which steps are `5` deviations
off; least squares over the others give the prices.

What the host takes between the end of a step and the begin of the next is fitted in the same way,
to a base and the rows of the first. Gaps that are too far off are those in which nobody was there.

How good the prices are is said of all steps, those that are off included: by how much a step is off
in the mean where every fifth is held out of the fit, and all steps and gaps in sum.

KV tokens are known where the trace tells of each row of a batch; where it does not, their price is
0 and is part of the others. So is that of a segment more, which has what it takes to wait for the
device in it, where no step runs in segments.

A step takes until the last of what it launched has ended, and from then on where the step before it
has: with asynchronous scheduling the CPU is in the next step while the GPU executes this one, and
that time is not paid twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stepscope.engine.executors.least_squares import Floats, is_near, least_squares, r_squared
from stepscope.engine.executors.simulated import CostModel
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace

_PRICES = {
    "base": "base_ns", "num_prefill_tokens": "prefill_token_ns", "num_decode_reqs": "decode_row_ns",
    "num_kv_tokens": "kv_token_ns", "num_more_segments": "body_ns", "is_new_size": "new_size_ns",
    "is_first": "first_ns", "num_decode_tokens": "decode_token_ns",
}  # fmt: skip
"""What a step is made of, and the field of `CostModel` that prices it."""
_ONCE = ("is_new_size", "is_first")
_OF_GAPS = {"base": "gap_ns", "num_rows": "gap_row_ns"}
_HELD_OUT, _FEWEST = 5, 20
_BAD, _MOST = 0.2, 0.75


@dataclass(frozen=True, slots=True)
class Fit:
    """A cost model and how well it explains the steps that it was fitted to.

    `r_squared` and the residuals are those of the steps that were kept; `num_outliers` were not.
    `held_out_error` is by how much of what it took a step is off in the mean, of every fifth, which
    the others foretell: None of fewer than 20 steps. `total_error` is that of all steps and gaps in
    sum, below nothing where the prices are too low. `doubts` say why the prices may be wrong, in a
    line each.
    """

    cost: CostModel
    num_steps: int
    num_outliers: int
    r_squared: float
    median_residual_ns: int
    max_residual_ns: int
    has_kv_tokens: bool
    held_out_error: float | None
    total_error: float
    doubts: tuple[str, ...] = ()

    def __str__(self) -> str:
        cost = self.cost
        kv = f" + {cost.kv_token_ns} ns a KV token" if self.has_kv_tokens else ""
        return (
            f"{cost.base_ns / 1e6:.3f} ms a step + {cost.prefill_token_ns / 1e3:.3f} µs a prompt "
            f"token + {cost.decode_row_ns / 1e3:.3f} µs a decode row{kv}{self._rest()}, from "
            f"{self.num_steps - self.num_outliers} of {self.num_steps} steps (R2 "
            f"{self.r_squared:.3f}, half of them within {self.median_residual_ns / 1e3:.1f} µs"
            f"{self._errors()})"
        )

    def _rest(self) -> str:
        cost = self.cost
        prices = (
            (cost.body_ns, "a segment more"), (cost.decode_token_ns, "a decode token"),
            (cost.new_size_ns, "the first step of a size"), (cost.first_ns, "the first step"),
            (cost.gap_ns, "between steps"), (cost.gap_row_ns, "a row between steps"),
        )  # fmt: skip
        return "".join(f" + {ns / 1e3:.3f} µs {what}" for ns, what in prices if ns)

    def _errors(self) -> str:
        held = self.held_out_error
        of_held = "" if held is None else f"; {held:.1%} off in the mean where held out"
        return f"{of_held}; {self.total_error:+.1%} in all"


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
    work = steps.select(*_PRICES).to_numpy().astype(np.float64)
    took_ns = steps["took_ns"].to_numpy().astype(np.float64)
    fitted, prices = _priced(work, took_ns)
    residuals = np.abs(took_ns - work @ prices)[fitted]
    gaps = steps.drop_nulls("gap_ns")
    idle, of_gaps = _between(gaps)
    taken_ns, foretold_ns = took_ns.sum(), (work @ prices).sum()
    if len(gaps):
        taken_ns += gaps["gap_ns"].to_numpy()[~idle].sum()
        foretold_ns += (gaps.select(*_OF_GAPS).to_numpy()[~idle] @ of_gaps).sum()
    names = (*_PRICES.values(), *_OF_GAPS.values())
    found = zip(names, (*prices.tolist(), *of_gaps.tolist()), strict=True)
    doubts = [*_doubts(steps, work[fitted], took_ns[fitted], prices, residuals)]
    return Fit(
        CostModel(sync_ns=0, **{name: round(price) for name, price in found}),
        len(took_ns),
        int((~fitted).sum()),
        r_squared(took_ns[fitted], residuals),
        round(float(np.median(residuals))),
        round(float(residuals.max())),
        has_kv_tokens,
        _held_out_error(work, took_ns),
        float(foretold_ns / taken_ns - 1),
        (*doubts, *_idle(gaps, idle)),
    )


def foretold(trace: Trace, cost: CostModel) -> pl.DataFrame:
    """Return `steps` of `trace` with the times that they would have at these costs.

    Only those that were timed and computed something; of each rank one follows the other.
    """
    steps, _ = _steps(trace)
    prices = [[getattr(cost, field) for field in of.values()] for of in (_PRICES, _OF_GAPS)]
    dur_ns = steps.select(*_PRICES).to_numpy() @ np.array(prices[0])
    gap_ns = steps.select(*_OF_GAPS).to_numpy() @ np.array(prices[1])
    begun_ns = pl.col("ts_ns").first() + (pl.col("dur_ns") + pl.col("gap_ns")).cum_sum()
    return steps.with_columns(
        dur_ns=pl.Series(np.maximum(np.round(dur_ns), 1), dtype=pl.Int64),
        gap_ns=pl.Series(np.round(gap_ns), dtype=pl.Int64),
    ).select(
        "rank", "step", "kind", "num_prefill_reqs", "num_decode_reqs", "num_prefill_tokens",
        pl.col("num_decode_tokens_told").alias("num_decode_tokens"), "dur_ns",
        ts_ns=(begun_ns - pl.col("dur_ns") - pl.col("gap_ns")).over("rank"),
    )  # fmt: skip


def _priced(work: Floats, took_ns: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Which steps lie near the prices, and the prices that these give."""
    fitted = is_near(work, took_ns)
    return fitted, least_squares(work[fitted], took_ns[fitted])


def _between(gaps: pl.DataFrame) -> tuple[NDArray[np.bool_], Floats]:
    """Which gaps are too long to be the host's work, and what that costs."""
    if len(gaps) < 2:
        return np.ones(len(gaps), bool), np.zeros(len(_OF_GAPS))
    work = gaps.select(*_OF_GAPS).to_numpy().astype(np.float64)
    fitted, prices = _priced(work, gaps["gap_ns"].to_numpy().astype(np.float64))
    return ~fitted, prices


def _held_out_error(work: Floats, took_ns: Floats) -> float | None:
    if len(work) < _FEWEST:
        return None
    is_held = np.arange(len(work)) % _HELD_OUT == _HELD_OUT - 1
    _, prices = _priced(work[~is_held], took_ns[~is_held])
    off = np.abs(work[is_held] @ prices - took_ns[is_held]) / took_ns[is_held]
    return float(off.mean())


def _idle(gaps: pl.DataFrame, idle: NDArray[np.bool_]) -> Iterator[str]:
    if num := int(idle.sum()):
        lasted_ms = float(gaps["gap_ns"].to_numpy()[idle].sum()) / 1e6
        yield (
            f"{num} of {len(gaps)} gaps between steps, {lasted_ms:,.3f} ms in all, are unlike the "
            "others and do not count: nobody may have been there"
        )


def _doubts(
    steps: pl.DataFrame, work: Floats, took_ns: Floats, prices: Floats, residuals: Floats
) -> Iterator[str]:
    lasting = [name not in _ONCE for name in _PRICES]
    num_sizes = len(np.unique(work[:, lasting], axis=0))
    num_prices = int((prices[lasting] > 0).sum())
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
        .with_columns(
            pl.lit(1).alias("base"),
            pl.col("num_more_segments", "num_decode_tokens").fill_null(0),
            num_decode_tokens_told="num_decode_tokens",
            num_rows=pl.col("num_prefill_reqs").fill_null(0) + pl.col("num_decode_reqs"),
        )
        .sort("rank", "step")
        .collect()
    )
    if (steps["num_decode_tokens"] == steps["num_decode_reqs"]).all():
        steps = steps.with_columns(num_decode_tokens=pl.lit(0))  # a row says as much as its token
    is_known = bool(steps.height and steps["is_known"].fill_null(value=False).all())
    if not is_known:
        steps = steps.with_columns(num_kv_tokens=pl.lit(0))
    return steps, is_known


def _timed(trace: Trace) -> pl.LazyFrame:
    """Steps with what each took beyond the end of those before it, and the gap to the next.

    `is_first` and `is_new_size` say whether a rank had no step before, and none with as many
    tokens.
    """
    end_ns = pl.col("ts_ns") + pl.col("dur_ns")
    ended_ns = end_ns.cum_max().shift(1).over("rank").fill_null(pl.col("ts_ns"))
    num_tokens = pl.col("num_prefill_tokens") + pl.col("num_decode_tokens").fill_null(
        pl.col("num_decode_reqs")
    )
    return (
        trace.steps.sort("rank", "ts_ns", "step")
        .with_columns(
            took_ns=end_ns - pl.max_horizontal("ts_ns", ended_ns),
            gap_ns=(pl.col("ts_ns").shift(-1) - end_ns.cum_max()).clip(0).over("rank"),
            is_first=(pl.int_range(pl.len()).over("rank") == 0).cast(pl.Int64),
            num_tokens=num_tokens,
        )
        .with_columns(
            is_new_size=(pl.int_range(pl.len()).over("rank", "num_tokens") == 0).cast(pl.Int64)
        )
    )
