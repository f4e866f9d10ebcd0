"""Spans, flows and counters out of a file's events, and what became of every event."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.ingest.derive.lanes import with_lanes
from stepscope.ingest.readers.chrome_counters import counter_rows
from stepscope.ingest.readers.chrome_slices import slices_of
from stepscope.ingest.readers.tracks import NAMING, with_tracks

ROLES = {
    "X": "slice", "B": "begin", "E": "end", "i": "instant", "I": "instant", "R": "instant",
    "P": "instant", "C": "counter", "M": "name", "s": "flow", "t": "flow", "f": "flow",
    "b": "async begin", "S": "async begin", "e": "async end", "F": "async end",
    "n": "async instant", "T": "async instant", "p": "async instant",
}  # fmt: skip
FLOW_ENDS = {"s": "start", "t": "step", "f": "finish"}
_CORRELATION = r'[{,]\s*"correlation"\s*:\s*(\d{1,18})\s*[,}]'
_EXTERNAL_ID = r'[{,]\s*"External id"\s*:\s*(\d{1,18})\s*[,}]'


@dataclass(frozen=True, slots=True)
class ChromeTables:
    """Tables of a file without rank and step, and its events counted: each read or skipped, once.

    `spans` has one column more than the table: `base`, its track before it was given lanes.
    """

    spans: pl.DataFrame
    flows: pl.DataFrame
    counters: pl.DataFrame
    read: dict[str, int]
    skipped: dict[str, int]
    repaired: dict[str, int]


def chrome_tables(events: pl.DataFrame) -> ChromeTables:
    """Sort events (see `event_table`) into tables, tracks named and slices in lanes."""
    events = with_tracks(events.with_columns(_role()))
    events = events.with_columns(_reason_to_skip(events["ph"]))
    good = events.filter(pl.col("skip").is_null())
    slices, endless, repaired = slices_of(good)
    counters, numberless = counter_rows(good.filter(pl.col("role") == "counter"))
    lost = pl.concat([endless, numberless])
    fates = events.join(lost, on="event", how="left").select("ph", pl.coalesce("skip", "lost"))
    spans = with_lanes(slices).with_columns(_correlation(slices["args"]))
    return ChromeTables(
        spans,
        _flows(good.filter(pl.col("role") == "flow"), spans),
        counters,
        _counted(fates.filter(pl.col("skip").is_null())["ph"]),
        _counted(fates["skip"].drop_nulls()),
        repaired,
    )


def _counted(texts: pl.Series) -> dict[str, int]:
    return dict(
        texts.value_counts().sort("count", texts.name, descending=[True, False]).iter_rows()
    )


def _role() -> pl.Expr:
    return pl.col("ph").replace_strict(ROLES, default=None, return_dtype=pl.String).alias("role")


def _reason_to_skip(ph: pl.Series) -> pl.Expr:
    """Why an event cannot be read, null when it can; the first reason counts."""
    role, is_name = pl.col("role"), pl.col("role") == "name"
    needs_id = role.str.starts_with("async") | (role == "flow")
    has_id = pl.col("id").is_not_null() | pl.col("id2").is_not_null()
    return (
        pl.when(role.is_null())
        .then(
            ph.replace_strict({text: _unread(text) for text in ph.unique()}, return_dtype=pl.String)
        )
        .when(is_name & pl.col("name").is_in(list(NAMING)))
        .then(None)
        .when(is_name)
        .then(pl.lit("metadata that is not a name"))
        .when(~pl.col("has_ts"))
        .then(pl.lit("no ts"))
        .when(pl.col("ts_ns").is_null())
        .then(pl.lit("ts is not a number of this era"))
        .when((role == "slice") & pl.col("has_dur") & pl.col("dur_ns").is_null())
        .then(pl.lit("dur is not a number of this era"))
        .when(needs_id & ~has_id)
        .then(pl.lit("no id"))
        .alias("skip")
    )


def _unread(ph: str) -> str:
    if not ph:
        return "no ph"
    return (
        f"ph {ph}" if len(ph) == 1 and ph.isascii() and ph.isprintable() else "ph of another kind"
    )


def _correlation(args: pl.Series) -> pl.Expr:
    """The number that ties a launch to what it launched.

    "External id" counts something else than "correlation"; it serves where there is none of the
    latter in the whole file, as without a device.
    """
    has_any = args.str.contains(_CORRELATION).any()
    pattern = _CORRELATION if has_any else _EXTERNAL_ID
    return pl.col("args").str.extract(pattern).cast(pl.Int64).alias("correlation")


def _flows(ends: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Ends of arrows, each on the lane of the latest slice begun there."""
    begun = spans.filter(pl.col("form") != "instant").select("ts_ns", "base", lane="track")
    placed = ends.sort("ts_ns").join_asof(
        begun.sort("ts_ns"), on="ts_ns", by_left="track", by_right="base", check_sortedness=False
    )
    return placed.sort("event").select(
        "ts_ns",
        pl.coalesce("id", "id2").alias("flow"),
        "name",
        pl.col("cat").alias("category"),
        pl.coalesce("lane", "track").alias("track"),
        pl.col("ph").replace_strict(FLOW_ENDS).alias("end"),
    )
