"""How long a reason to wait held: it is told once, and holds until something else is told."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

GRAMMAR = (pl.col("resource") == "grammar") | (pl.col("reason") == "its grammar is being compiled")
THROTTLED = pl.col("resource") == "dp-throttle"


def grammar_waits(decisions: pl.LazyFrame, lifecycle: pl.DataFrame) -> dict[str, int]:
    """Who waited for a grammar, and the step at which it was there.

    A reason holds until something else is told of the request: that it waits for something else, or
    that it is let in.
    """
    last = decisions.filter(GRAMMAR).group_by("subject").agg(waited=pl.col("step").max())
    let_in = (
        lifecycle.lazy().filter(pl.col("event") == "admit").select(subject="request", step="step")
    )
    later = pl.concat([decisions.select("subject", "step"), let_in]).join(last, on="subject")
    found = (
        later.filter(pl.col("step") > pl.col("waited"))
        .group_by("subject")
        .agg(pl.col("step").min())
    )
    never = last.join(found, on="subject", how="anti").select("subject", pl.lit(-1, pl.Int64))
    return dict(pl.concat([found, never.rename({"literal": "step"})]).collect().iter_rows())


def throttled_steps(rows: Callable[[str], pl.LazyFrame]) -> set[int]:
    """The steps at which a rank was told to hold back prefills, as far as anybody waited for that.

    `rows` gives a table of the rank.
    """
    decisions = rows("decisions")
    throttled = decisions.filter(THROTTLED).select("subject", held="step").unique()
    other = decisions.filter(~THROTTLED.fill_null(value=False)).select("subject", "step")
    moves = rows("lifecycle").select(subject="request", step="step")
    ran = rows("batch_rows").select(subject="request", step="step")
    later = pl.concat([other, moves, ran]).join(throttled, on="subject")
    until = (
        later.filter(pl.col("step") > pl.col("held"))
        .group_by("subject", "held")
        .agg(until=pl.col("step").min())
    )
    held = throttled.join(until, on=["subject", "held"], how="left").collect()
    last = decisions.select(pl.col("step").max()).collect().item() or 0
    return {
        step
        for _, first, end in held.select("subject", "held", "until").iter_rows()
        for step in range(first, end if end is not None else last + 1)
    }
