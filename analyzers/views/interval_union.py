"""How much of an interval is covered by spans, without pairing the two up.

Spans are merged until none touches another. What is covered up to a moment is then a sum, and what
is covered of an interval the difference of two: the cost grows with the rows, not with their pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

SPAN = {"rank": pl.Int32, "from_ns": pl.Int64, "to_ns": pl.Int64}
OF_RANK = ("rank",)


def joined(spans: pl.LazyFrame, by: Sequence[str] = OF_RANK) -> pl.LazyFrame:
    """The union of `spans` (from_ns, to_ns, by): those that touch or overlap are one.

    There is one for each rank, or for each combination of the columns `by`, in order of time. A
    span of no length that touches no other stays.
    """
    reached_ns = pl.col("to_ns").cum_max()
    last = spans.group_by(by).agg(last_ns=pl.col("to_ns").max())
    is_apart = pl.col("from_ns") > pl.col("_before_ns")
    return (
        spans.sort("from_ns")
        .with_columns(_before_ns=reached_ns.shift(1).over(by))
        .filter(is_apart.fill_null(value=True))
        .select(*by, "from_ns", to_ns=pl.col("_before_ns").shift(-1).over(by))
        .join(last, on=by, how="left", nulls_equal=True)
        .with_columns(to_ns=pl.coalesce("to_ns", "last_ns"))
        .drop("last_ns")
    )


def merged(spans: pl.LazyFrame, by: Sequence[str] = OF_RANK) -> pl.LazyFrame:
    """The same of spans that have a length, with `before_ns`, which adds up those before each."""
    length = pl.col("to_ns") - pl.col("from_ns")
    return (
        joined(spans.filter(length > 0), by)
        .sort(*by, "from_ns")
        .with_columns(before_ns=(length.cum_sum() - length).over(by))
    )


def covered(
    intervals: pl.LazyFrame, union: pl.LazyFrame, into: str, by: tuple[str, ...] = OF_RANK
) -> pl.LazyFrame:
    """Add to `intervals` (from_ns, to_ns, by, ...) how much of each its `union` covers."""
    until_from, until_to = f"_{into}_from", f"_{into}_to"
    begun = _with_sum(intervals, union, by, "from_ns", until_from)
    return (
        _with_sum(begun, union, by, "to_ns", until_to)
        .with_columns((pl.col(until_to) - pl.col(until_from)).alias(into))
        .drop(until_from, until_to)
    )


def shares(intervals: pl.LazyFrame, layers: Sequence[tuple[str, pl.LazyFrame]]) -> pl.LazyFrame:
    """Add to `intervals` a column per layer: what its spans cover and no layer before it does."""
    union = pl.LazyFrame(schema=SPAN)
    told, names = intervals.with_columns(_none=pl.lit(0, pl.Int64)), ["_none"]
    for column, spans in layers:
        more = spans.select(*SPAN).collect()
        if more.is_empty():
            told = told.with_columns(pl.lit(0, pl.Int64).alias(column))
            continue
        union = merged(pl.concat([union.select(*SPAN), more.lazy()])).collect().lazy()
        names.append(f"_{column}")
        own = (pl.col(names[-1]) - pl.col(names[-2])).alias(column)
        told = covered(told, union, names[-1]).with_columns(own)
    return told.drop(names).collect().lazy()


def _with_sum(
    intervals: pl.LazyFrame, union: pl.LazyFrame, by: tuple[str, ...], at: str, into: str
) -> pl.LazyFrame:
    spans = union.sort("from_ns").rename({"from_ns": "_from", "to_ns": "_to", "before_ns": "_sum"})
    since = pl.min_horizontal(at, "_to") - pl.col("_from")
    return (
        intervals.sort(at)
        .join_asof(spans, left_on=at, right_on="_from", by=list(by), check_sortedness=False)
        .with_columns((pl.col("_sum") + since).fill_null(0).alias(into))
        .drop("_from", "_to", "_sum", strict=False)
    )
