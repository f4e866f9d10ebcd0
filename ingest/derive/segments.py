"""When each segment of a step ran: the one definition for lanes and exports.

`segments` says when a segment began, not when it ended. Where the segments of a step began one
after the other, each lasts until the next one, and the last until its step ended. An engine that
prepares all of them before it runs any writes the same time in each row: then the time of the step
is divided by their tokens, which is an estimate and no measurement. With two-batch overlap the
halves of a batch run at once, each as long as its step.
"""

from __future__ import annotations

import polars as pl

from stepscope.ingest.derive.states import step_times
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

BY_TOKENS, IN_EQUAL_PARTS, AT_ONCE = "by tokens", "in equal parts", "at once"
"""How the time of a step was divided where it was not recorded; `at once`: not at all."""
OVERLAPS = r"\btbo\b"
"""In the path of a step whose segments run at once."""
_STEP = ["rank", "step"]


def segment_times(trace: Trace, only: pl.Expr | None = None) -> pl.LazyFrame:
    """When each segment ran, or those of `only` some steps.

    Columns: rank, step, segment, ref (its row), from_ns, to_ns, division. `to_ns` is null where
    neither its step nor a later segment says when it ended. `division` is null where the times were
    recorded, else one of BY_TOKENS, IN_EQUAL_PARTS and AT_ONCE. Rows without a rank, step or time
    are left out.
    """
    began = pl.col("ts_ns").clip(-FAR_NS, FAR_NS)
    rows = (
        trace.segments.with_row_index("ref")
        .filter(pl.lit(value=True) if only is None else only)
        .drop_nulls([*_STEP, "ts_ns"])
        .select(*_STEP, "segment", "ref", "num_tokens", began_ns=began)
    )
    times = step_times(trace).select(*_STEP, step_from_ns="from_ns", step_to_ns="to_ns")
    overlapping = (
        trace.steps.filter(pl.col("executed_path").str.contains(OVERLAPS))
        .select(_STEP)
        .unique()
        .with_columns(is_at_once=pl.lit(value=True))
    )
    tokens = pl.col("num_tokens").clip(0)
    knows_tokens = (tokens.is_not_null().all() & (tokens.sum() > 0)).over(_STEP)
    return (
        rows.join(times, on=_STEP, how="left")
        .join(overlapping, on=_STEP, how="left")
        .sort(*_STEP, "began_ns", "segment", "ref")
        .with_columns(
            size=pl.len().over(_STEP),
            is_apart=(pl.col("began_ns").n_unique() == pl.len()).over(_STEP),
            weight=pl.when(knows_tokens).then(tokens).otherwise(pl.lit(1, pl.Int64)),
            step_from_ns=pl.coalesce("step_from_ns", pl.col("began_ns").min().over(_STEP)),
        )
        .with_columns(
            division=pl.when("is_apart")
            .then(pl.lit(None, pl.String))
            .when(pl.col("is_at_once").fill_null(value=False))
            .then(pl.lit(AT_ONCE))
            .when(knows_tokens)
            .then(pl.lit(BY_TOKENS))
            .otherwise(pl.lit(IN_EQUAL_PARTS)),
            following_ns=pl.col("began_ns").shift(-1).over(_STEP),
            before=(pl.col("weight").cum_sum().over(_STEP) - pl.col("weight")),
            whole=pl.col("weight").sum().over(_STEP),
        )
        .with_columns(_from(), _to())
        .with_columns(to_ns=pl.col("to_ns").clip(pl.col("from_ns")))
        .select(*_STEP, "segment", "ref", "from_ns", "to_ns", "division")
    )  # fmt: skip


def _is_divided() -> pl.Expr:
    return pl.col("division").is_in([BY_TOKENS, IN_EQUAL_PARTS]) & (
        pl.col("step_to_ns").is_not_null()
    )


def _share(tokens: pl.Expr) -> pl.Expr:
    """When so many tokens of a step had been computed, if each takes as long."""
    took = pl.col("step_to_ns") - pl.col("step_from_ns")
    return pl.col("step_from_ns") + (took * (tokens / pl.col("whole"))).round().cast(pl.Int64)


def _from() -> pl.Expr:
    divided = pl.when(_is_divided()).then(_share(pl.col("before")))
    return divided.otherwise("began_ns").alias("from_ns")


def _to() -> pl.Expr:
    recorded = pl.coalesce("following_ns", "step_to_ns")
    return (
        pl.when(_is_divided())
        .then(_share(pl.col("before") + pl.col("weight")))
        .when(pl.col("division").is_null())
        .then(recorded)
        .otherwise("step_to_ns")
        .alias("to_ns")
    )
