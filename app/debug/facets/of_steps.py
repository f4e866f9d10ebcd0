"""A step and its surroundings: what is left of its budget, buckets, and the next collectives."""

from __future__ import annotations

import polars as pl

from stepscope.app.debug.facets.look import Facet, Look


def _budget(look: Look) -> pl.DataFrame | None:
    """Tokens that the batch may hold and holds, and what is kept back; null where not told."""
    used = pl.col("num_prefill_tokens") + pl.col("num_decode_tokens")
    told = look.now("steps").head(1).select(
        "token_budget", num_tokens=used, left=pl.col("token_budget") - used,
        reserved_tokens="reserved_tokens", reserve_ratio="reserve_ratio",
        kv_blocks_free="kv_blocks_free", kv_blocks_total="kv_blocks_total",
        kv_blocks_cached="kv_blocks_cached",
    ).collect()  # fmt: skip
    if not len(told):
        return None
    known = [name for name in told.columns if told[name].null_count() < len(told)]
    return told.select(known) if known else None


def _buckets(look: Look) -> pl.DataFrame | None:
    """The last that was decided about each bucket."""
    is_bucket = pl.col("subject_kind") == "bucket"
    if not len(look.rows("decisions").filter(is_bucket).head(1).collect()):
        return None
    told = look.then("decisions").filter(is_bucket)
    columns = ("verdict", "reason", "needed", "holder", "instead", "step")
    last = told.group_by(bucket="subject").agg(pl.col(columns).last())
    return last.sort("bucket").collect()


def _collectives(look: Look) -> pl.DataFrame | None:
    """What each rank enters next in each of its groups; null where it enters nothing more."""
    rows = look.debugger.tables.table("collectives")
    is_next = pl.col("ts_ns") > look.ts_ns
    group = ["rank", "group", "stream"]
    ordered = rows.sort("ts_ns", maintain_order=True)
    every = ordered.select(group).unique(maintain_order=True)
    first_ns = look.debugger.bounds_ns[0]
    following = ordered.filter(is_next).group_by(group).agg(
        pl.col("ordinal", "op", "num_elements", "step", "rows").first(),
        at_ns=pl.col("ts_ns").first() - first_ns,
    )  # fmt: skip
    joined = every.join(following, on=group, how="left", nulls_equal=True)
    named = joined.join(_requests_of(look), on=["rank", "step", "rows"], how="left")
    return named.drop("step", "rows").sort("group", "stream", "rank").collect()


def _requests_of(look: Look) -> pl.LazyFrame:
    """Which requests the rows of a batch are that a collective is for: rank, step, rows, requests.

    A rank that knows of no rows has none here.
    """
    key = ["rank", "step", "rows"]
    told = look.debugger.tables.table("collectives").select(key).drop_nulls().unique()
    rows = told.with_columns(
        row=pl.col("rows").str.split(",").cast(pl.List(pl.Int32), strict=False)
    )
    batch = look.debugger.tables.table("batch_rows").select("rank", "step", "row", "request")
    each = rows.explode("row").join(batch, on=["rank", "step", "row"], how="left")
    return each.group_by(key).agg(requests=pl.col("request").sort_by("row").str.join(" "))


OF_STEPS: tuple[Facet, ...] = (
    Facet("budget", "what the step may hold, what is left, what is kept back", ("steps",),
          "token_budget", _budget),
    Facet("buckets", "the last decision about each bucket", ("decisions",), "bucket", _buckets),
    Facet("collectives", "what each rank enters next", ("collectives",), "rank", _collectives),
)  # fmt: skip
