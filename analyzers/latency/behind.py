"""Whoever stands behind the head of a queue waits for what the head lacks, and for as long.

A decision with the resource `queue` names the head (`holder`) that a request stands behind. An
engine that tells of the queue tells it of those near its head alone (docs/decisions/0002): whoever
waits further behind, and of whom nothing was decided, waits behind the head that was named last,
but for who stands first in a queue that was sorted anew.
Where nothing is known of what the head lacked at the time, `head` is all that can be said.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.latency.intervals import CODE, NUMBER_OF, RUNNING, WAITING
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

HEAD, CAME = NUMBER_OF["head"], NUMBER_OF["step"]
_BEHIND = (pl.col("state") == WAITING) & (pl.col("work") == 0) & (pl.col("reason") == HEAD)


def with_heads(trace: Trace, asked: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
    """The lines that are `asked` for, and those of all heads that anybody stood behind."""
    heads = _queued(trace).select("rank", request="holder").unique().collect()
    if heads.is_empty():
        return asked
    is_asked, is_head = (lines.join(each, on=["rank", "request"], how="semi", nulls_equal=True)
                         for each in (asked, heads))  # fmt: skip
    return pl.concat([is_asked, is_head]).unique("line", keep="first", maintain_order=True)


def passed_on(trace: Trace, intervals: pl.LazyFrame, lines: pl.DataFrame) -> pl.LazyFrame:
    """`intervals` with the head's own reason where a request stood behind it.

    `lines` are those of the intervals, the heads' among them.
    """
    named = _named(trace, lines)
    if named.is_empty():
        return intervals.drop("head")
    is_idle = (pl.col("state") == WAITING) & (pl.col("work") == 0)
    is_unexplained = is_idle & (pl.col("reason") == 0) & ~pl.col("is_first")
    told = intervals.with_columns(
        reason=pl.when(is_unexplained).then(pl.lit(HEAD, CODE)).otherwise("reason")
    ).collect()
    lacked = _lacked(told, named["head"].append(told["head"]).unique())
    behind = _runs(told.filter(_BEHIND))
    of_whom = [
        behind.filter(pl.col("head").is_not_null()),
        _cut(behind.filter(pl.col("head").is_null()).drop("head"), named, "rank", "head"),
    ]
    explained = _cut(pl.concat(of_whom, how="diagonal"), lacked, "head", "own")
    own = pl.when(pl.col("own") > 0).then("own").otherwise(pl.lit(HEAD, CODE))
    pieces = explained.with_columns(reason=own.cast(CODE)).select(told.columns)
    return pl.concat([told.filter(~_BEHIND), pieces]).drop("head").lazy()


def _queued(trace: Trace) -> pl.LazyFrame:
    is_told = pl.col("holder").is_not_null() & pl.col("ts_ns").is_not_null()
    return trace.decisions.filter(
        pl.col("subject_kind") == "request", pl.col("resource") == "queue", is_told
    )


def _named(trace: Trace, lines: pl.DataFrame) -> pl.DataFrame:
    """Which head was named last at each time: rank, from_ns, head (its line)."""
    heads = lines.select("rank", holder="request", head="line").lazy()
    told = _queued(trace).select("rank", "holder", from_ns=pl.col("ts_ns").clip(-FAR_NS, FAR_NS))
    return (
        told.join(heads, on=["rank", "holder"])
        .sort("rank", "from_ns", maintain_order=True)
        .filter(pl.col("head").ne_missing(pl.col("head").shift(1).over("rank")))
        .select("rank", "from_ns", "head")
        .collect()
    )


def _lacked(told: pl.DataFrame, heads: pl.Series) -> pl.DataFrame:
    """What each of `heads` lacked at each time: head, from_ns, own (a cause; 0 where not known)."""
    is_known = (pl.col("state") != RUNNING) & (pl.col("work") == 0)
    is_own = is_known & ~pl.col("reason").is_in([HEAD, CAME])
    own = pl.when(is_own).then("reason").otherwise(pl.lit(0, CODE))
    of_heads = told.filter(pl.col("line").is_in(heads.implode()))
    since = of_heads.select("from_ns", head="line", own=own)
    gone = of_heads.group_by("line").agg(pl.col("to_ns").max())
    after = gone.select(from_ns="to_ns", head="line", own=pl.lit(0, CODE))
    changes = pl.col("own").ne_missing(pl.col("own").shift(1).over("head"))
    return pl.concat([since, after]).sort("head", "from_ns").filter(changes)


def _runs(behind: pl.DataFrame) -> pl.DataFrame:
    """Neighbours behind one head made one: a decision that says so again tells nothing new."""
    alike = ("line", "head", "is_before_first")
    goes_on = pl.all_horizontal(
        *(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in alike),
        pl.col("from_ns") == pl.col("to_ns").shift(1),
    )
    ordered = behind.sort("line", "from_ns")
    numbered = ordered.with_columns(run=(~goes_on.fill_null(value=False)).cum_sum())
    others = [name for name in behind.columns if name != "to_ns"]
    return numbered.group_by("run").agg(pl.col(others).first(), pl.col("to_ns").last()).drop("run")


def _cut(rows: pl.DataFrame, changes: pl.DataFrame, by: str, into: str) -> pl.DataFrame:
    """Cut `rows` wherever `into` changes, which is null before the first of the `changes`.

    `changes` tell from when on, `from_ns`, it is what it is for a value of `by`.
    """
    from_the_first = (
        changes.select(by)
        .unique()
        .with_columns(from_ns=pl.lit(-2 * FAR_NS), **{into: pl.lit(None, changes.schema[into])})
    )
    spans = pl.concat([from_the_first.select(changes.columns), changes]).sort(by, "from_ns")
    spans = spans.with_row_index("span").with_columns(
        ends_ns=pl.col("from_ns").shift(-1).over(by).fill_null(2 * FAR_NS)
    )
    found = rows
    for moment, place in ((pl.col("from_ns"), "first"), (pl.col("to_ns") - 1, "last")):
        places = spans.select(by, at_ns="from_ns", **{place: "span"}).sort("at_ns")
        found = found.with_columns(at_ns=moment).sort("at_ns").join_asof(
            places, on="at_ns", by=by, check_sortedness=False
        )  # fmt: skip
    of_each = pl.int_ranges("first", pl.col("last").cast(pl.Int64) + 1)
    return (
        found.with_columns(span=of_each.cast(pl.List(pl.UInt32)))
        .explode("span")
        .join(
            spans.select("span", into, begins_ns="from_ns", ends_ns="ends_ns"),
            on="span",
            how="left",
        )
        .with_columns(
            from_ns=pl.max_horizontal("from_ns", "begins_ns"),
            to_ns=pl.min_horizontal("to_ns", "ends_ns"),
        )
        .drop("at_ns", "first", "last", "span", "begins_ns", "ends_ns")
    )
