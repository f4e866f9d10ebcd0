"""What a step takes, fitted to how requests were served, where no step was recorded.

While a request decodes, each of its tokens takes a step: from its first token to its last it has
seen as many steps as it has tokens after the first, the decodes of everybody in them, the context
that these read, and the prompts that were computed meanwhile. Tokens are taken to come evenly
between the first and the last of a request. Of a third of the requests, the first to arrive, this
makes the costs; the others tell how good they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from stepscope.analyzers.replay.step_costs import fit
from stepscope.ingest.replay.script import StepCosts
from stepscope.ingest.trace import Trace

FITTED_SHARE = 3
FEWEST_TOKENS = 50
"""Requests of fewer tokens are steps of chance."""
FEWEST = 10


@dataclass(frozen=True, slots=True)
class ServedCosts:
    """Costs that were fitted to `num_fitted` requests; the `held_out` ones were not looked at.

    `median_error` and `p90_error` are of the time from first to last token of those fitted.
    """

    costs: StepCosts
    num_fitted: int
    held_out: frozenset[str]
    median_error: float
    p90_error: float


def fit_served(trace: Trace) -> ServedCosts | None:
    """Fit the costs to the requests that were served; None where there are too few."""
    served = _served(trace)
    number = len(served) // FITTED_SHARE
    given, took = _equations(served, number)
    if len(took) < FEWEST:
        return None
    weights, _ = fit(given, took)
    errors = np.abs(given @ weights - took) / took
    base, prefill, decode, context = (float(each) for each in weights)
    return ServedCosts(
        StepCosts(base, prefill, decode, context),
        len(took), frozenset(served["request"][number:]),
        float(np.median(errors)), float(np.quantile(errors, 0.9)),
    )  # fmt: skip


def _served(trace: Trace) -> pl.DataFrame:
    """request, arrived, first, last, prompt, tokens of those that finished, in order of arrival."""
    event, ts_ns = pl.col("event"), pl.col("ts_ns")
    return (
        trace.lifecycle.group_by("request")
        .agg(
            arrived=ts_ns.filter(event == "arrive").min(),
            first=ts_ns.filter(event == "first-token").min(),
            last=ts_ns.filter(event == "finish").max(),
            prompt=pl.col("prompt_len").max(),
            tokens=pl.col("num_generated").max(),
        )
        .drop_nulls()
        .sort("arrived", "request")
        .collect()
    )


def _equations(served: pl.DataFrame, number: int) -> tuple[np.ndarray, np.ndarray]:
    """steps, prompt tokens, decodes and context that each of the first requests saw; and ns."""
    first, last, prompt, tokens = (
        served[name].to_numpy().astype(float) for name in ("first", "last", "prompt", "tokens")
    )
    took = np.maximum(last - first, 1.0)
    rows = []
    chosen = [at for at in range(number) if tokens[at] >= FEWEST_TOKENS and last[at] > first[at]]
    for at in chosen:
        begin, end = np.maximum(first, first[at]), np.minimum(last, last[at])
        decoded = np.maximum(end - begin, 0.0) / took * (tokens - 1)
        context = prompt + ((begin + end) / 2 - first) / took * (tokens - 1)
        came = (first > first[at]) & (first <= last[at])
        seen = decoded > 0
        rows.append(
            (tokens[at] - 1, prompt[came].sum(), decoded.sum(), (decoded * context)[seen].sum())
        )
    return np.array(rows).reshape(-1, 4), took[chosen]
