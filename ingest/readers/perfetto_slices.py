"""Slices out of the events of a Perfetto file."""

from __future__ import annotations

import polars as pl

from stepscope.ingest.derive.brackets import brackets
from stepscope.ingest.derive.pairs import pair

_BEGUN = ("begin", "instant", "slice", "async begin", "async instant")
_HALVES = ("begin", "end", "async begin", "async end")


def slices_of(events: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Slices and instants of events that have a `key` each, and how many ends nothing began.

    An end belongs to the latest open begin of its key, and of its name where it has one. To what
    began are added `dur_ns`, `form` and the arguments of its end.
    """
    halves = events.filter(pl.col("role").is_in(_HALVES)).sort("ts_ns", "event")
    ends, num_lost = _matched(halves)
    begun = events.filter(pl.col("role").is_in(_BEGUN), pl.col("told_form").ne_missing("flow"))
    timed = begun.join(ends, on="event", how="left", maintain_order="left").with_columns(
        pl.coalesce("dur_ns", pl.col("end_ns") - pl.col("ts_ns")).alias("dur_ns"),
        pl.coalesce(_both_args(), "args", "end_args").alias("args"),
    )
    return timed.with_columns(_form()).drop("end_ns", "end_args"), num_lost


def _matched(halves: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """When each begin ends and with which arguments, and how many ends have no begin."""
    is_begin = pl.col("role").str.ends_with("begin").alias("is_begin")
    rows = halves.select("event", "key", "name", is_begin)
    is_named = (~pl.col("is_begin") & pl.col("name").is_not_null()).any().over("key")
    by_name = rows.filter(is_named)
    plain, lost = brackets(rows.filter(~is_named).select("event", "key", "is_begin"))
    named, lost_by_name = pair(by_name.with_columns(pl.col("key").cast(pl.String)).iter_rows())
    columns = {"event": [*named.keys()], "end": [*named.values()]}
    matched = pl.concat([plain, pl.DataFrame(columns, schema=plain.schema)])
    ended = halves.select(end="event", end_ns="ts_ns", end_args="args")
    return matched.join(ended, on="end").drop("end"), len(lost) + len(lost_by_name)


def _form() -> pl.Expr:
    role = pl.col("role")
    return (
        pl.when(role.str.ends_with("instant"))
        .then(pl.lit("instant"))
        .when(pl.col("dur_ns").is_null())
        .then(pl.lit("unfinished"))
        .when(role == "async begin")
        .then(pl.lit("async"))
        .otherwise(pl.coalesce("told_form", pl.lit("slice")))
        .alias("form")
    )


def _both_args() -> pl.Expr:
    """Arguments of begin and end as one object, where both have some."""
    first, second = pl.col("args").str.strip_suffix("}"), pl.col("end_args").str.strip_prefix("{")
    return pl.concat_str(first, second, separator=", ")
