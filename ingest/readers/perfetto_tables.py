"""Spans, flows and counters of a Perfetto file, and the steps and collectives that they imply."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.ingest.derive.collectives import infer_collectives
from stepscope.ingest.derive.lanes import with_lanes
from stepscope.ingest.derive.steps import infer_steps, tag_spans
from stepscope.ingest.readers.perfetto_slices import slices_of
from stepscope.ingest.readers.perfetto_tracks import Place

SEPARATOR = " / "
NO_NAME = "(no name)"
NOWHERE = "global"
_CORRELATION = r'[{,]\s*"correlation"\s*:\s*(\d{1,18})\s*[,}]'
_EXTERNAL_ID = r'[{,]\s*"External id"\s*:\s*(\d{1,18})\s*[,}]'
_IS_ASYNC = pl.col("role").str.starts_with("async")


@dataclass(frozen=True, slots=True)
class PerfettoTables:
    """Tables of a file, and its events counted: each read or skipped, once."""

    tables: dict[str, pl.DataFrame]
    read: dict[str, int]
    skipped: dict[str, int]
    repaired: dict[str, int]


def perfetto_tables(
    events: pl.DataFrame,
    arrows: pl.DataFrame,
    samples: pl.DataFrame,
    places: Sequence[Place],
    rank: int,
) -> PerfettoTables:
    """Sort events, ends of arrows and samples into tables; what names no rank is of `rank`."""
    shown = _shown(places, rank)
    placed = events.join(shown, on="track", how="left", maintain_order="left")
    slices, num_lost = slices_of(placed.with_columns(_key()))
    parts: dict[str, list[pl.DataFrame]] = defaultdict(list)
    lanes = []
    for of_rank in slices.partition_by("rank", maintain_order=True):
        spans = _spans(of_rank)
        lanes.append(spans.select("rank", "event", "ts_ns", "base", "form", lane="track"))
        for name, frame in _of_rank(spans).items():
            parts[name].append(frame.with_columns(pl.lit(spans["rank"][0]).alias("rank")))
    parts["flows"] = [_flows(arrows, shown, lanes)]
    parts["counters"] = [_counters(samples, shown)]
    tables = {name: pl.concat(frames) for name, frames in parts.items()}
    return PerfettoTables(
        {name: frame for name, frame in tables.items() if len(frame)},
        _counted(events["role"], num_lost),
        {"end without begin": num_lost} if num_lost else {},
        _repaired(slices),
    )


def _shown(places: Sequence[Place], rank: int) -> pl.DataFrame:
    """A row per number of a track: what it is called, and what its rows need of it."""
    rows = [
        (
            number,
            rank if place.rank is None else place.rank,
            SEPARATOR.join(place.path) if place.path else None,
            SEPARATOR.join(place.path[:-1]) if place.path[:-1] else None,
            place.path[-1] if place.path else NO_NAME,
            place.path[0] if place.path else NOWHERE,
            place.unit,
        )
        for number, place in enumerate(places)
    ]
    texts = dict.fromkeys(("base", "above", "own_name", "process", "unit"), pl.String)
    return pl.DataFrame(rows, schema={"track": pl.Int64, "rank": pl.Int32, **texts}, orient="row")


def _key() -> pl.Expr:
    """What begin and end have in common: the track, or category and id of asynchronous ones."""
    async_id = pl.struct("process", "category", "id").rank("dense").cast(pl.Int64)
    return pl.when(_IS_ASYNC).then(-async_id).otherwise("track").alias("key")


def _spans(slices: pl.DataFrame) -> pl.DataFrame:
    """Slices in lanes, with names and correlations."""
    told = pl.concat_str(pl.col("category").fill_null("async"), pl.col("id"), separator=" ")
    hopping = pl.concat_str("process", told.fill_null("async"), separator=SEPARATOR)
    base = pl.when(_IS_ASYNC).then(hopping).otherwise(pl.col("base").fill_null(NOWHERE))
    named = slices.with_columns(base.alias("base"), pl.col("name").fill_null(NO_NAME))
    laned = with_lanes(
        named.select(
            "rank", "event", "ts_ns", "base", "name", "category", "form", "dur_ns", "args",
            "correlation", "told_step", track="base",
        )
    )  # fmt: skip
    return laned.with_columns(_correlation(laned["args"]))


def _correlation(args: pl.Series) -> pl.Expr:
    """The number that ties a launch to what it launched: a field's, else an argument's."""
    has_any = args.str.contains(_CORRELATION).any()
    pattern = _CORRELATION if has_any else _EXTERNAL_ID
    return pl.coalesce("correlation", pl.col("args").str.extract(pattern).cast(pl.Int64))


def _of_rank(spans: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The tables of a rank, and its steps and collectives as far as its spans imply them."""
    laned = spans.drop("rank", "event", "told_step")
    steps = infer_steps(laned)
    tagged = tag_spans(laned, steps).with_columns(
        pl.coalesce(spans["told_step"], "step").alias("step")
    )
    return {
        "spans": tagged.drop("base"),
        "steps": steps.drop("span"),
        "collectives": infer_collectives(tagged),
    }


def _flows(arrows: pl.DataFrame, shown: pl.DataFrame, lanes: list[pl.DataFrame]) -> pl.DataFrame:
    """Ends of arrows, each on the lane of its slice, else of the latest begun on its track."""
    placed = arrows.join(shown.select("track", "rank", "base"), on="track", how="left")
    track = pl.col("base")
    if lanes:
        begun = pl.concat(lanes)
        placed = placed.join(begun.select("event", "lane"), on="event", how="left")
        latest = begun.filter(pl.col("form") != "instant").sort("ts_ns")
        placed = placed.sort("ts_ns", "event", maintain_order=True).join_asof(
            latest.select("ts_ns", "rank", "base", latest="lane"),
            on="ts_ns",
            by=["rank", "base"],
            check_sortedness=False,
        )
        track = pl.coalesce("lane", "latest", "base")
    place = pl.int_range(pl.len()).over("arrow")
    end = (
        pl.when(place == 0)
        .then(pl.lit("start"))
        .when(place == pl.len().over("arrow") - 1)
        .then(pl.lit("finish"))
        .otherwise(pl.lit("step"))
    )
    of_arrow = [
        pl.col(name).fill_null(pl.col(name).drop_nulls().first().over("arrow"))
        for name in ("flow", "name", "category")
    ]
    named = placed.sort("ts_ns", "event", maintain_order=True).with_columns(
        *of_arrow, track.alias("track"), pl.coalesce("end", end).alias("end")
    )
    columns = ("rank", "ts_ns", pl.coalesce("flow", "arrow"), "name", "category", "track", "end")
    return named.select(columns)


def _counters(samples: pl.DataFrame, shown: pl.DataFrame) -> pl.DataFrame:
    placed = samples.join(shown, on="track", how="left", maintain_order="left")
    return placed.select(
        "rank", "ts_ns", pl.col("above").alias("track"), pl.col("own_name").alias("name"), "unit",
        "value",
    )  # fmt: skip


def _counted(roles: pl.Series, num_lost: int) -> dict[str, int]:
    """How many events of each role were read, of ends those that end something."""
    named = roles.replace("async end", "end")
    counts: dict[str, int] = dict(named.value_counts(sort=True).iter_rows())
    counts["end"] = counts.get("end", 0) - num_lost
    return {role: num for role, num in counts.items() if num}


def _repaired(slices: pl.DataFrame) -> dict[str, int]:
    found = slices.select(
        (pl.col("form") == "unfinished").sum().alias("begin without end, kept as unfinished"),
        pl.col("name").is_null().sum().alias("no name"),
    ).row(0, named=True)
    return {what: num for what, num in found.items() if num}
