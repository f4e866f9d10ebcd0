"""The table of lifecycles: arrivals, and where it is known, when requests were served."""

from __future__ import annotations

import polars as pl

from stepscope.ingest.readers.requests.decode import request_name

_SERVED = {"admit_ns": "admit", "first_ns": "first-token", "finish_ns": "finish"}


def lifecycle(requests: pl.DataFrame) -> pl.DataFrame:
    """Arrivals in the order of the list; with what else is known, all in the order of time."""
    names = pl.Series(map(request_name, range(len(requests))), dtype=pl.String)
    named = requests.with_columns(pl.coalesce("request", names).alias("request"))
    arrivals = named.select("request", "ts_ns", "prompt_len", "max_tokens", event=pl.lit("arrive"))
    served = [
        named.filter(pl.col(column).is_not_null()).select(
            "request", ts_ns=column, event=pl.lit(event), num_generated=_generated(event)
        )
        for column, event in _SERVED.items()
    ]
    if not sum(map(len, served)):
        return arrivals
    return pl.concat([arrivals, *served], how="diagonal").sort("ts_ns", maintain_order=True)


def _generated(event: str) -> pl.Expr:
    """How many tokens there are: all that were generated when it finishes."""
    known = {"first-token": pl.lit(1, pl.Int64), "finish": pl.col("max_tokens")}
    return known.get(event, pl.lit(None, pl.Int64))
