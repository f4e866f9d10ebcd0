"""Requests at a position: who waits and why, who runs, who is in the batch, how far each is."""

from __future__ import annotations

import numpy as np
import polars as pl

from stepscope.app.debug.facets.look import Facet, Look
from stepscope.ingest.derive.states import LEAVES

LEFT_OUT = ("deferred", "put-back", "passed-over")


def _waiting(look: Look) -> pl.DataFrame | None:
    if look.state.waiting is None:
        return None
    waiting = look.state.waiting
    holding = look.debugger.session.reasons.holding(waiting, look.state)
    told = [holding.get(request) for request in waiting]
    types = {"needed": pl.Int64, "available": pl.Int64}
    columns = [
        pl.Series(name, [each and getattr(each, name) for each in told], types.get(name, pl.String))
        for name in ("verdict", "reason", "resource", "needed", "available", "holder")
    ]
    place = pl.Series("place", range(len(waiting)), pl.Int64)
    return pl.DataFrame([place, pl.Series("request", waiting, pl.String), *columns])


def _running(look: Look) -> pl.DataFrame | None:
    if look.state.running is None:
        return None
    batch = None if look.state.batch is None else {each.request for each in look.state.batch}
    rows = [
        {"request": name, "in_batch": None if batch is None else name in batch}
        for name in look.state.running
    ]
    return pl.DataFrame(rows, schema={"request": pl.String, "in_batch": pl.Boolean})


def _batch(look: Look) -> pl.DataFrame | None:
    if look.state.batch is None:
        return None
    columns = (
        "row", "request", "phase", "num_tokens", "num_computed", "prompt_len", "slot",
        "is_recompute",
    )  # fmt: skip
    return look.now("batch_rows").sort("row", nulls_last=True).select(columns).collect()


def _requests(look: Look) -> pl.DataFrame | None:
    """How far each is that has come and not ended; null where the trace does not say."""
    if look.state.waiting is None and look.state.running is None:
        return None
    told = look.then("lifecycle")
    first = told.group_by("request", maintain_order=True).agg(
        pl.col("ts_ns").first().alias("came_ns"),
        pl.col("prompt_len", "max_tokens").drop_nulls().first(),
        pl.col("num_generated").drop_nulls().last(),
        pl.col("event").last(),
        pl.col("seq").filter(pl.col("event") == "preempt").max().alias("lost"),
    )
    after = pl.col("num_computed") + pl.col("num_tokens")
    last = (
        look.then("batch_rows")
        .group_by("request")
        .agg(computed=after.last(), in_batch=pl.col("seq").last())
    )
    # What a preemption leaves of what was computed, the trace does not say.
    is_lost = pl.col("lost").fill_null(-1) > pl.col("in_batch").fill_null(-1)
    is_here = pl.col("request").is_in(_present(look))
    joined = (
        first.join(last, on="request", how="left", maintain_order="left")
        .join(_deferrals(look), on="request", how="left", maintain_order="left")
        .filter(is_here)
    )
    are_told = look.debugger.tables.is_recorded("decisions")
    return joined.select(
        "request", "event", "prompt_len",
        computed=pl.when(~is_lost).then("computed"),
        left_of_prompt=pl.when(~is_lost).then((pl.col("prompt_len") - pl.col("computed")).clip(0)),
        max_tokens="max_tokens",
        num_deferrals=pl.col("num_deferrals").fill_null(0) if are_told else None,
    ).collect()  # fmt: skip


def _deferrals(look: Look) -> pl.LazyFrame:
    """How often each was left out for want of KV blocks since it was let in last.

    What was decided again as before has no row of its own: it stands for each step that was formed
    until something else was decided.
    """
    let_in = (
        look.then("lifecycle")
        .filter(pl.col("event").is_in(LEAVES))
        .group_by("request")
        .agg(let_in=pl.col("seq").max())
    )
    told = (
        look.then("decisions")
        .filter(pl.col("subject_kind") == "request")
        .rename({"subject": "request"})
        .join(let_in, on="request", how="left", maintain_order="left")
        .filter(pl.col("seq") > pl.col("let_in").fill_null(-1))
        .with_columns(next=pl.col("seq").shift(-1).over("request"))
        .filter(pl.col("verdict").is_in(LEFT_OUT), pl.col("resource") == "kv-block")
        .collect()
    )
    moments = look.debugger.session.moments
    now = np.iinfo(np.int64).max if look.position.seq is None else look.position.seq
    formed = moments.step_seq[moments.step_seq <= now]
    first = np.searchsorted(formed, told["seq"].to_numpy())
    last = np.searchsorted(formed, told["next"].fill_null(now + 1).to_numpy())
    stands = pl.Series(np.where(told["verdict"] == "deferred", np.maximum(last - first, 1), 1))
    counted = told.select("request", num_deferrals=stands)
    return counted.group_by("request").agg(pl.col("num_deferrals").sum()).lazy()


def _present(look: Look) -> list[str]:
    return [*(look.state.waiting or ()), *(look.state.running or ())]


OF_REQUESTS: tuple[Facet, ...] = (
    Facet("waiting", "requests of the waiting queue, in its order, and why", ("lifecycle",),
          "request", _waiting),
    Facet("running", "requests that were let in", ("lifecycle",), "request", _running),
    Facet("batch", "requests of the step's batch", ("batch_rows",), "request", _batch),
    Facet("requests", "how far each request is that is there", ("lifecycle", "batch_rows"),
          "request", _requests),
)  # fmt: skip
