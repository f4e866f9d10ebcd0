"""Slices and instants of a Chrome JSON file: complete, begun and ended, or asynchronous events."""

from __future__ import annotations

import polars as pl

from stepscope.ingest.derive.pairs import pair

NO_NAME = "(no name)"
_BEGUN = ("slice", "begin", "instant", "async begin", "async instant")
_ID_IN_ID2 = r':\s*"?([^"},]*)'
_ON_THREAD = pl.col("id2").str.contains('"thread":true', literal=True).fill_null(False)


def slices_of(events: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, int]]:
    """Slices of the events that `chrome_tables` found good.

    Gives the spans (without lanes, with the number of the event that begins each), the ends that
    nothing began (event, lost), and what was repaired, counted.
    """
    ends, unmatched = _paired(events)
    timed = (
        events.filter(pl.col("role").is_in(_BEGUN))
        .join(ends, on="event", how="left", maintain_order="left")
        .with_columns(_duration())
    )
    repaired = timed.select(
        (pl.col("duration") < 0).sum().alias("negative dur taken as 0"),
        _is_endless("begin", "async begin").sum().alias("begin without end, kept as unfinished"),
        _is_endless("slice").sum().alias("slice without dur, kept as unfinished"),
        pl.col("name").is_null().sum().alias("no name"),
    ).row(0, named=True)
    spans = timed.select(
        "event",
        _track().alias("track"),
        pl.col("name").fill_null(NO_NAME),
        pl.col("cat").alias("category"),
        _form().alias("form"),
        "ts_ns",
        pl.col("duration").clip(lower_bound=0).alias("dur_ns"),
        pl.coalesce(_both_args(), "args", "end_args").alias("args"),
    )
    return spans, unmatched, {reason: num for reason, num in repaired.items() if num}


def _paired(events: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The end of each begin (event, end_ns, end_args), and the ends without a begin."""
    roles = ["begin", "end", "async begin", "async end"]
    halves = events.filter(pl.col("role").is_in(roles)).sort("ts_ns", "event")
    # An end with an empty name is one without a name.
    name = pl.when(pl.col("name") != "").then("name")
    rows = halves.select("event", _key(), name, pl.col("role").str.ends_with("begin")).iter_rows()
    ends, unmatched = pair(rows)
    matched = pl.DataFrame(
        {"event": list(ends.keys()), "end": list(ends.values())},
        schema={"event": events.schema["event"], "end": events.schema["event"]},
    )
    ended = halves.select(end="event", end_ns="ts_ns", end_args="args")
    lost = pl.DataFrame({"event": unmatched}, schema={"event": events.schema["event"]})
    return (
        matched.join(ended, on="end").drop("end"),
        lost.with_columns(pl.lit("end without begin").alias("lost")),
    )


def async_id() -> pl.Expr:
    """The id of what may hop between threads, null where neither of its fields tells one."""
    return pl.coalesce("id", pl.col("id2").str.extract(_ID_IN_ID2))


def _key() -> pl.Expr:
    """What begin and end have in common: the thread, or category and id of an asynchronous one."""
    pid = pl.col("pid").fill_null("")
    is_global = pl.col("id2").str.contains("global", literal=True).fill_null(False)
    owner = pl.when(is_global).then(pl.lit("")).otherwise(pid)
    shared = pl.concat_str(
        pl.lit("id"), owner, pl.col("cat").fill_null(""), async_id(), separator="\0"
    )
    thread = pl.concat_str(pl.lit("thread"), pid, pl.col("tid").fill_null(""), separator="\0")
    return pl.when(_is_async()).then(shared).otherwise(thread).alias("key")


def _is_async() -> pl.Expr:
    return pl.col("role").str.starts_with("async")


def _track() -> pl.Expr:
    """The thread, or for what may hop between threads the process with category and id.

    What we wrote ourselves says in `id2` where it stays on its thread.
    """
    named = pl.concat_str(pl.col("cat").fill_null("async"), async_id(), separator=" ")
    hopping = pl.concat_str("process", named, separator=" / ")
    return pl.when(_is_async() & ~_ON_THREAD).then(hopping).otherwise("track")


def _duration() -> pl.Expr:
    between = pl.col("end_ns") - pl.col("ts_ns")
    return pl.when(pl.col("role") == "slice").then("dur_ns").otherwise(between).alias("duration")


def _is_endless(*roles: str) -> pl.Expr:
    return pl.col("role").is_in(roles) & pl.col("duration").is_null()


def _form() -> pl.Expr:
    role = pl.col("role")
    return (
        pl.when(role.str.ends_with("instant"))
        .then(pl.lit("instant"))
        .when(pl.col("duration").is_null())
        .then(pl.lit("unfinished"))
        .when(role == "async begin")
        .then(pl.lit("async"))
        .otherwise(pl.lit("slice"))
    )


def _both_args() -> pl.Expr:
    """Arguments of begin and end as one object, where both have some."""
    first = pl.col("args").str.strip_suffix("}")
    second = pl.col("end_args").str.strip_prefix("{")
    have_fields = pl.all_horizontal(
        pl.col(name).str.contains(r'^\{\s*"[\s\S]*\}$') for name in ("args", "end_args")
    )
    return pl.when(have_fields).then(pl.concat_str(first, second, separator=","))
