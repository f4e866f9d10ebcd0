"""Collectives of several ranks side by side: which rows of which ranks are one collective.

Within a group, which is its name and the ranks that should join, the n-th collective of one rank
faces the n-th of each other rank. Sends and receives between two ranks are no collectives. One that
was inferred has no number where it is not known which one of another rank it faces.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from stepscope.analyzers.views.known import any_row
from stepscope.analyzers.views.once import once
from stepscope.ingest.derive.collectives.spellings import BLOCKING, PAIRWISE, kind_of
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

GROUP = ("group", "expected_ranks")
MEETING = (*GROUP, "ordinal")
UNEVEN_OR_NOT = "alltoall"
_SHORT = {"broadcast": "B", "allreduce": "AR", "allgather": "AG", "reducescatter": "RS"}


def operations(trace: Trace) -> pl.LazyFrame:
    """`collectives` of which time and ordinal are known, in one spelling.

    Adds kind: the operation in small letters, without what stands before a colon and without
    anything between its letters. `group` is the stream where no group is named, and neither it nor
    `expected_ranks` is null. That is an Enum: a job of a thousand ranks says all of their numbers
    in each row, 4 kB, which every comparison by group would copy.
    """
    return once(trace, "operations", lambda: _operations(trace))


def _operations(trace: Trace) -> pl.LazyFrame:
    known = [pl.col(name).is_not_null() for name in ("ts_ns", "ordinal", "op")]
    kinds = (
        trace.collectives.select("op")
        .unique()
        .drop_nulls()
        .with_columns(kind=kind_of(pl.col("op")))
        .collect()
    )
    expected_ranks = pl.col("expected_ranks").fill_null("")
    of_ranks = trace.collectives.select(expected_ranks.unique()).collect()["expected_ranks"]
    return (
        trace.collectives.filter(*known)
        .with_columns(
            pl.col("ts_ns").clip(-FAR_NS, FAR_NS),
            pl.col("dur_ns").clip(0, FAR_NS),
            pl.coalesce("group", "stream", pl.lit("")).alias("group"),
            expected_ranks.cast(pl.Enum(sorted({"", *of_ranks}))),
            kind=pl.col("op").replace_strict(kinds["op"], kinds["kind"], return_dtype=pl.String),
        )
        .filter(~pl.col("kind").is_in(PAIRWISE))
        .drop("stream", "num_bytes")
    )


def blocking(trace: Trace) -> pl.LazyFrame:
    """Operations that nobody leaves before all have entered.

    An all-to-all is one where all send the same number of elements: whom nobody sends anything
    need not wait.
    """
    found = operations(trace).filter(pl.col("kind").is_in(BLOCKING))
    exchanged = found.filter(pl.col("kind") == UNEVEN_OR_NOT)
    if not any_row(exchanged):
        return found
    sent = pl.col("num_elements")
    is_even = (sent.n_unique() == 1) & (sent.null_count() == 0)
    even = exchanged.group_by(MEETING).agg(_is_even=is_even).filter("_is_even")
    others = found.filter(pl.col("kind") != UNEVEN_OR_NOT)
    return pl.concat([others, exchanged.join(even.drop("_is_even"), on=MEETING, how="semi")])


def meetings(operations: pl.LazyFrame, *aggregates: pl.Expr, **named: pl.Expr) -> pl.LazyFrame:
    """One row for each of `operations` that several ranks entered, with what is asked of its rows.

    A number that a rank has twice says nothing about which was meant, and is left out.
    """
    num_ranks = pl.col("rank").n_unique()
    return (
        operations.group_by(MEETING)
        .agg(*aggregates, **named, _is_met=(num_ranks > 1) & (num_ranks == pl.len()))
        .filter("_is_met")
        .drop("_is_met")
    )


def have_met(trace: Trace) -> bool:
    """Whether two ranks of the trace have collectives of one group."""
    ranks = once(
        trace, "ranks of groups", lambda: operations(trace).select(*GROUP, "rank").unique()
    )
    return any_row(ranks.group_by(GROUP).len().filter(pl.col("len") > 1))


def face_each_other(trace: Trace) -> bool:
    """Whether two ranks came to any one collective: without ordinals in common none is compared."""
    return have_met(trace) and any_row(meetings(operations(trace)))


def expected(operations: pl.LazyFrame, into: str) -> pl.LazyFrame:
    """One row for each rank that should join, which is `into`; none where that is not known."""
    ranks = (
        pl.col("expected_ranks")
        .cast(pl.String)
        .str.split(",")
        .list.eval(pl.element().str.strip_chars().cast(pl.Int32, strict=False))
    )
    named = operations.with_columns(ranks.alias(into)).explode(into, empty_as_null=True)
    return named.filter(pl.col(into).is_not_null())


def of_group(row: Mapping[str, object]) -> str:
    """` of ep`, as a sentence goes on; nothing where the group has no name."""
    return f" of {row['group']}" if row["group"] else ""


def told(row: dict[str, object]) -> str:
    """An operation as a sentence names it: `broadcast of 1 uint32 (prefill, slot 2)`."""
    size = "" if row["num_elements"] is None else f" of {row['num_elements']:,}"
    dtype = "" if row["dtype"] is None else f" {row['dtype']}"
    slot = None if row["slot"] is None else f"slot {row['slot']}"
    what = ", ".join(str(each) for each in (row["command"], slot) if each is not None)
    return f"{row['op']}{size}{dtype}{f' ({what})' if what else ''}"


def in_short(row: dict[str, object]) -> str:
    """An operation as a sequence shows it: `B(slot 2)`, `AR(decode)`."""
    name = _SHORT.get(str(row["kind"]), row["op"])
    what = [str(row["command"])] if row["command"] is not None else []
    what += [str(row["slot"])] if row["slot"] is not None else []
    return f"{name}({' '.join(what)})" if what else str(name)
