"""When each segment of a step ran: the one definition for lanes and exports.

`segments` says when a segment began, not when it ended. Where the segments of a step began one
after the other, each lasts until the next one, and the last until its step ended. An engine that
prepares all of them before it runs any writes the same time in each row: then the time of the step
is divided by their tokens, which is an estimate and no measurement. With two-batch overlap the
halves of a batch run at once, each as long as its step.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from stepscope.ingest.derive.states import step_times
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

BY_TOKENS, IN_EQUAL_PARTS, AT_ONCE = "by tokens", "in equal parts", "at once"
"""How the time of a step was divided where it was not recorded; `at once`: not at all."""
OVERLAPS = r"\btbo\b"
"""In the path of a step whose segments run at once."""
_STEP = ["rank", "step"]


def segment_times(trace: Trace) -> pl.LazyFrame:
    """When each segment ran.

    Columns: rank, step, segment, ref (its row), from_ns, to_ns, division. `to_ns` is null where
    neither its step nor a later segment says when it ended. `division` is null where the times were
    recorded, else one of BY_TOKENS, IN_EQUAL_PARTS and AT_ONCE. Rows without a rank, step or time
    are left out.
    """
    times = step_times(trace).select(*_STEP, step_from_ns="from_ns", step_to_ns="to_ns")
    return (
        _divided(trace, pl.lit(value=True))
        .lazy()
        .join(times, on=_STEP, how="left", maintain_order="left")
        .with_columns(step_from_ns=pl.coalesce("step_from_ns", "first_ns"))
        .with_columns(_from(), _to())
        .with_columns(to_ns=pl.col("to_ns").clip(pl.col("from_ns")))
        .select(*_STEP, "segment", "ref", "from_ns", "to_ns", "division")
    )


def division_of(trace: Trace, rank: int, step: int) -> str | None:
    """How the time of one step was divided; null as in `segment_times`.

    Reads the rows of that step alone.
    """
    only = (pl.col("rank") == rank) & (pl.col("step") == step)
    found = _divided(trace, only)["division"]
    return found[0] if len(found) else None


def _divided(trace: Trace, only: pl.Expr) -> pl.DataFrame:
    """Segments of some steps in their order, and how the time of their step is divided.

    Adds first_ns (when the first of the step began), following_ns (when the next did), and of the
    weights by which a step is divided that of the segment, of those before it, and the whole.
    """
    rows = (
        trace.segments.with_row_index("ref")
        .filter(only)
        .drop_nulls([*_STEP, "ts_ns"])
        .select(
            *_STEP, "segment", "ref", began_ns=pl.col("ts_ns").clip(-FAR_NS, FAR_NS),
            tokens=pl.col("num_tokens").clip(0),
        )
        .sort(*_STEP, "began_ns", "segment", "ref")
        .collect()
    )  # fmt: skip
    overlapping = (
        trace.steps.filter(only, pl.col("executed_path").str.contains(OVERLAPS))
        .select(_STEP)
        .unique()
        .with_columns(is_at_once=pl.lit(value=True))
        .collect()
    )
    return (
        rows.with_columns(_of_steps(rows))
        .join(overlapping, on=_STEP, how="left", maintain_order="left")
        .with_columns(
            division=pl.when("is_apart")
            .then(pl.lit(None, pl.String))
            .when(pl.col("is_at_once").fill_null(value=False))
            .then(pl.lit(AT_ONCE))
            .when("knows_tokens")
            .then(pl.lit(BY_TOKENS))
            .otherwise(pl.lit(IN_EQUAL_PARTS))
        )
    )


def _of_steps(rows: pl.DataFrame) -> pl.DataFrame:
    """What a segment needs to know of the others of its step, of which the rows follow each other.

    By arrays: millions of small groups take Polars several times as long.
    """
    if rows.is_empty():
        numbers = ("weight", "before", "whole", "first_ns", "following_ns")
        flags = dict.fromkeys(("is_apart", "knows_tokens"), pl.Boolean)
        return pl.DataFrame(schema={**flags, **dict.fromkeys(numbers, pl.Int64)})
    rank, step, began = (rows[name].to_numpy() for name in (*_STEP, "began_ns"))
    is_next = (rank[1:] == rank[:-1]) & (step[1:] == step[:-1])
    starts = np.flatnonzero(np.append(True, ~is_next))
    sizes = np.diff(starts, append=len(rows))
    tokens, is_null = rows["tokens"].fill_null(0).to_numpy(), rows["tokens"].is_null().to_numpy()
    at_one_time = np.append(False, is_next & (began[1:] == began[:-1]))
    is_apart = ~np.logical_or.reduceat(at_one_time, starts)
    knows_tokens = ~np.logical_or.reduceat(is_null, starts)
    knows_tokens &= np.add.reduceat(tokens, starts) > 0
    weight = np.where(np.repeat(knows_tokens, sizes), tokens, 1)
    until = np.cumsum(weight)
    before = until - weight
    return pl.DataFrame(
        {
            "is_apart": np.repeat(is_apart, sizes),
            "knows_tokens": np.repeat(knows_tokens, sizes),
            "weight": weight,
            "before": before - np.repeat(before[starts], sizes),
            "whole": np.repeat(np.add.reduceat(weight, starts), sizes),
            "first_ns": np.repeat(began[starts], sizes),
            "following_ns": pl.Series(np.append(began[1:], 0)).set(
                pl.Series(np.append(~is_next, True)), None
            ),
        }
    )


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
