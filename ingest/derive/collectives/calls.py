"""Collective calls side by side: which calls of which ranks are one collective, and what is wrong.

Within a group, which is its name and the ranks that should join, the n-th collective of one rank
faces the n-th of each other rank. Sends and receives between two ranks are no collectives. One that
was inferred has no number where it is not known which one of another rank it faces.

This is the one definition for the rules COL*, for the lanes and for exports.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.ingest.derive.collectives.spellings import BLOCKING, PAIRWISE, UNEVEN, kind_of
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

GROUP = ("group", "expected_ranks")
MEETING = (*GROUP, "ordinal")
SAID = ("kind", "dtype", "num_elements", "command", "slot")
"""What the calls of one collective have in common."""
DIFFERS, ALONE = "differs", "alone"
"""Marks of a call: not what most other ranks came with; no other rank has a call it could face."""
RETURNED, BLOCKED, UNKNOWN = "returned", "blocked", "unknown"
"""How a call ended: it never did where it is the last of its rank, group and stream and has no
duration; with a later call after it, it did at a time that is not recorded.
"""
_NAME = pl.coalesce("group", "stream", pl.lit("")).alias("group")
_EXPECTED = pl.col("expected_ranks").fill_null("")
_OF_VERDICT = {
    "kind": ("kind",), "dtype": ("dtype",), "size or syntax": ("num_elements", "command", "slot"),
}  # fmt: skip


def operations(collectives: pl.LazyFrame) -> pl.LazyFrame:
    """`collectives` of which time and ordinal are known, in one spelling.

    Adds kind: the operation in small letters, without what stands before a colon and without
    anything between its letters. `group` is the stream where no group is named, and neither it nor
    `expected_ranks` is null. That is an Enum: a job of a thousand ranks says all of their numbers
    in each row, 4 kB, which every comparison by group would copy.
    """
    known = [pl.col(name).is_not_null() for name in ("ts_ns", "ordinal", "op")]
    kinds = (
        collectives.select("op")
        .unique()
        .drop_nulls()
        .with_columns(kind=kind_of(pl.col("op")))
        .collect()
    )
    return (
        _grouped(collectives.filter(*known), collectives)
        .with_columns(
            pl.col("ts_ns").clip(-FAR_NS, FAR_NS),
            pl.col("dur_ns").clip(0, FAR_NS),
            kind=pl.col("op").replace_strict(kinds["op"], kinds["kind"], return_dtype=pl.String),
        )
        .filter(~pl.col("kind").is_in(PAIRWISE))
        .drop("stream", "num_bytes")
    )


def _grouped(rows: pl.LazyFrame, collectives: pl.LazyFrame) -> pl.LazyFrame:
    """Rows with the name of their group, and the ranks of it as an Enum."""
    of_ranks = collectives.select(_EXPECTED.unique()).collect()["expected_ranks"]
    return rows.with_columns(_NAME, _EXPECTED.cast(pl.Enum(sorted({"", *of_ranks}))))


def meetings(operations: pl.LazyFrame, *aggregates: pl.Expr, **named: pl.Expr) -> pl.LazyFrame:
    """One row for each of `operations` that several ranks entered, with aggregates of its rows.

    A number that a rank has twice says nothing about which was meant, and is left out.
    """
    num_ranks = pl.col("rank").n_unique()
    return (
        operations.group_by(MEETING)
        .agg(*aggregates, **named, _is_met=(num_ranks > 1) & (num_ranks == pl.len()))
        .filter("_is_met")
        .drop("_is_met")
    )


def compared(operations: pl.LazyFrame) -> pl.LazyFrame:
    """One row for each of `operations` that several ranks entered: whether they agree.

    Columns: those of MEETING, first_ns (when the first rank entered), is_inferred (of any rank) and
    `verdict`, null where they agree, else as in PyTorch's flight recorder analyser: kind, dtype,
    size or syntax, undecided or state (COL001 says what each means).
    """

    def differs(*columns: str) -> pl.Expr:
        return pl.any_horizontal(pl.col(column).drop_nulls().n_unique() > 1 for column in columns)

    is_stuck = pl.col("dur_ns").is_null() & pl.col("inferred").is_null()
    is_left = is_stuck.any() & pl.col("dur_ns").is_not_null().any()
    verdict = (
        pl.when("_kind").then(pl.lit("kind"))
        .when("_dtype").then(pl.lit("dtype"))
        .when("_syntax").then(pl.lit("size or syntax"))
        .when(pl.col("_size") & ~pl.col("_uneven")).then(pl.lit("size or syntax"))
        .when(pl.col("_size") & pl.col("_stuck")).then(pl.lit("undecided"))
        .when(pl.col("_left") & pl.col("_blocking")).then(pl.lit("state"))
    )  # fmt: skip
    return meetings(
        operations,
        first_ns=pl.col("ts_ns").min(), is_inferred=pl.col("inferred").is_not_null().any(),
        _kind=differs("kind"), _dtype=differs("dtype"), _size=differs("num_elements"),
        _syntax=differs("command", "slot"), _stuck=is_stuck.any(), _left=is_left,
        _uneven=pl.col("kind").is_in(UNEVEN).any(),
        _blocking=pl.col("kind").is_in(BLOCKING).any(),
    ).select(*MEETING, "first_ns", "is_inferred", verdict=verdict)  # fmt: skip


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


def stuck(operations: pl.LazyFrame) -> pl.LazyFrame:
    """Operations that never ended."""
    return operations.filter(pl.col("dur_ns").is_null(), pl.col("inferred").is_null())


def missed(operations: pl.LazyFrame, ranks: Sequence[int]) -> pl.LazyFrame:
    """Operations that never ended, a row for each rank (`missing`) that did not enter them.

    Only ranks of which something is recorded count: those of the manifest, which are `ranks`, and
    those that have operations. Who did not enter is looked up once for each operation, and not for
    each rank that is in it.
    """
    never_ended = stuck(operations)
    users = operations.group_by(*GROUP).agg(_users=pl.col("rank").unique())
    of_stuck = never_ended.select(MEETING).unique()
    of_all = (
        of_stuck.filter(pl.col("expected_ranks") == "")
        .join(users, on=GROUP, how="left")
        .with_columns(missing="_users")
        .explode("missing", empty_as_null=True)
        .drop("_users")
    )
    recorded = pl.LazyFrame({"missing": ranks}, schema={"missing": pl.Int32})
    used = operations.select(missing="rank").unique()
    absent = (
        pl.concat([expected(of_stuck, "missing"), of_all])
        .join(pl.concat([recorded, used]).unique(), on="missing", how="semi")
        .join(
            operations.select(*MEETING, missing="rank").unique(),
            on=[*MEETING, "missing"],
            how="anti",
        )
    )
    return never_ended.join(absent, on=MEETING)


def calls(trace: Trace) -> pl.DataFrame:
    """Every recorded call that has a rank and a time, in the order of the table.

    Columns: those of `collectives` in the spelling of `operations` (group, expected_ranks), `ref`
    (the row's number), from_ns, to_ns (null where it is not known or there is none), `fate`
    (RETURNED, BLOCKED or UNKNOWN) and `mark` (DIFFERS, ALONE, or null). What was inferred from a
    profile is left out: its spans are shown as they are.
    """
    numbered = trace.collectives.with_row_index("ref").filter(pl.col("inferred").is_null())
    rows = _grouped(numbered.drop_nulls(["rank", "ts_ns"]), numbered)
    since = pl.col("ts_ns").clip(-FAR_NS, FAR_NS)
    lasts = pl.col("dur_ns").clip(0, FAR_NS)
    timed = rows.with_columns(from_ns=since, to_ns=(since + lasts).clip(-FAR_NS, FAR_NS)).collect()
    marked = _marked(operations(numbered)).collect()
    return (
        timed.join(marked, on="ref", how="left", maintain_order="left")
        .join(_not_last(timed), on="ref", how="left", maintain_order="left")
        .with_columns(
            fate=pl.when(pl.col("to_ns").is_not_null())
            .then(pl.lit(RETURNED))
            .when("is_not_last")
            .then(pl.lit(UNKNOWN))
            .otherwise(pl.lit(BLOCKED))
        )
        .drop("is_not_last")
    )


def absences(trace: Trace, recorded: pl.DataFrame) -> pl.DataFrame:
    """Where a rank never came to a call in which others wait: a row for each rank and group.

    `recorded` is what `calls` gives. Columns: rank, those of GROUP, from_ns (when the first other
    rank began to wait, or the end of the last that this rank did in the group), and `ref`, the row
    of the rank that waits. A rank that is itself blocked in the group is there, and not absent.
    """
    numbered = trace.collectives.with_row_index("ref").filter(pl.col("inferred").is_null())
    first = pl.all().sort_by("ts_ns", "ref").first()
    waits = (
        missed(operations(numbered), trace.manifest.ranks)
        .select(*GROUP, "missing", "ts_ns", "ref")
        .group_by(*GROUP, "missing")
        .agg(first)
        .rename({"missing": "rank"})
        .collect()
    )
    key = ["rank", *GROUP]
    last = (
        recorded.join(waits, on=key, how="semi")
        .group_by(key)
        .agg(
            until_ns=pl.max_horizontal("from_ns", "to_ns").max(),
            is_in=(pl.col("fate") == BLOCKED).any(),
        )
    )
    return (
        waits.join(last, on=key, how="left")
        .filter(~pl.col("is_in").fill_null(value=False))
        .select(*key, "ref", from_ns=pl.max_horizontal("ts_ns", "until_ns"))
        .sort(key)
    )


def _not_last(timed: pl.DataFrame) -> pl.DataFrame:
    """The calls without an end after which the rank came to another one of the same stream."""
    endless = timed.filter(pl.col("to_ns").is_null())
    key = ["rank", *GROUP, "stream"]
    latest = timed.join(endless, on=key, how="semi", nulls_equal=True)
    last = latest.group_by(key).agg(pl.col("ref").sort_by("from_ns", "ordinal", "ref").last())
    others = endless.join(last, on="ref", how="anti")
    return others.select("ref", is_not_last=pl.lit(value=True))


def _marked(operations: pl.LazyFrame) -> pl.LazyFrame:
    """The calls that differ from those of most ranks, or that face none: ref and mark.

    A hash tells first which collectives to look at: in most traces there are none.
    """
    rows = operations.with_columns(_at=pl.struct(MEETING).hash(), _said=pl.struct(SAID).hash())
    differ = pl.col("_said").min() != pl.col("_said").max()
    odd = rows.group_by("_at").agg(differ=differ, num=pl.len()).collect().lazy()
    unlike = rows.join(odd.filter("differ"), on="_at", how="semi")
    single = rows.join(odd.filter(pl.col("num") == 1), on="_at", how="semi")
    return pl.concat([_differing(unlike), _alone(single, operations)]).unique("ref", keep="first")


def _differing(unlike: pl.LazyFrame) -> pl.LazyFrame:
    """Calls that came with what no majority has, by the verdict on their collective."""

    def is_odd(column: str) -> pl.Expr:
        value, known = pl.col(column), pl.col(column).count().over(MEETING)
        same = pl.col(column).count().over([*MEETING, column])
        parts = value.drop_nulls().n_unique().over(MEETING) > 1
        return value.is_not_null() & parts & (2 * same <= known)

    verdict = compared(unlike).select(*MEETING, "verdict")
    rows = unlike.join(verdict, on=MEETING)
    odd = [
        (pl.col("verdict") == name)
        & is_odd(column)
        & (~pl.col("kind").is_in(UNEVEN) | pl.lit(column != "num_elements"))
        for name, columns in _OF_VERDICT.items()
        for column in columns
    ]
    return rows.filter(pl.any_horizontal(odd)).select("ref", mark=pl.lit(DIFFERS))


def _alone(single: pl.LazyFrame, operations: pl.LazyFrame) -> pl.LazyFrame:
    """Calls that ended, to which no other rank came that was already recorded in the group then."""
    since = operations.group_by(*GROUP, other="rank").agg(first=pl.col("ordinal").min())
    several = since.filter(pl.len().over(GROUP) > 1)
    facing = single.filter(pl.col("dur_ns").is_not_null()).join(several, on=GROUP)
    has_other = (pl.col("other") != pl.col("rank")) & (pl.col("first") <= pl.col("ordinal"))
    return facing.filter(has_other).select("ref", mark=pl.lit(ALONE)).unique()
