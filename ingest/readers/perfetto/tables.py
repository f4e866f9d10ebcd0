"""Spans, flows and counters of a Perfetto file, and the steps and collectives that they imply."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl
import polars.selectors as cs

from stepscope.ingest.derive.collectives.facing import facing
from stepscope.ingest.derive.collectives.inferred import infer_collectives
from stepscope.ingest.derive.gpu_times import derived_steps
from stepscope.ingest.derive.lanes import with_lanes
from stepscope.ingest.derive.steps import unread_tags
from stepscope.ingest.frames import Frame
from stepscope.ingest.readers.perfetto.collect import EventTables
from stepscope.ingest.readers.perfetto.packets.tracks import Place
from stepscope.ingest.readers.perfetto.slices import slices_of, with_end_args
from stepscope.ingest.readers.rank_notes import said_of_groups
from stepscope.ingest.storage.spool import Part, Spooled, beside, unpacked

SEPARATOR = " / "
NO_NAME = "(no name)"
NOWHERE = "global"
_IS_ASYNC = pl.col("role").str.starts_with("async")
_NO_LANES = pl.DataFrame(
    schema={"rank": pl.Int32, "event": pl.UInt32, "ts_ns": pl.Int64,
            **dict.fromkeys(("base", "form", "lane"), pl.String)}
)  # fmt: skip
_TEXTS = ("track", "name", "category")


@dataclass(frozen=True, slots=True)
class PerfettoTables:
    """Tables of a file, the ranks in them, and its events counted: each read or skipped, once."""

    tables: dict[str, Frame]
    ranks: tuple[int, ...]
    read: dict[str, int]
    skipped: dict[str, int]
    repaired: dict[str, int]
    notes: tuple[str, ...]
    unread_tags: dict[str, int]


def perfetto_tables(
    events: EventTables, samples: pl.DataFrame, places: Sequence[Place], rank: int
) -> PerfettoTables:
    """Sort events and samples into tables; what names no rank is of `rank`."""
    shown = _shown(places, rank)
    templates = _placed(events.templates, shown)
    slices = slices_of(events, templates["key"])
    ranks = [_laned(spans) for spans in _by_rank(_named(slices.spans, templates))]
    parts: dict[str, list[pl.DataFrame]] = defaultdict(list)
    notes: list[str] = []
    for spans in ranks:
        of_rank, said = _of_rank(spans, events.candidates, slices.end_args)
        notes += said
        for name, frame in of_rank.items():
            parts[name].append(frame.with_columns(pl.lit(spans["rank"][0]).alias("rank")))
    parts["flows"] = [_flows(events.arrows, shown, ranks)]
    parts["counters"] = [_counters(samples, shown)]
    tables = {name: _together(frames) for name, frames in parts.items()}
    if len(ranks) > 1:
        numbered = facing(tables["collectives"], tables["steps"], len(ranks))
        tables["collectives"] = numbered.collectives
        notes += said_of_groups(numbered.groups)
    found: dict[str, Frame] = {name: frame for name, frame in tables.items() if len(frame)}
    if "spans" in found:
        found["spans"] = _with_args(tables["spans"].drop("row"), events.args, slices.end_args)
    return PerfettoTables(
        found,
        tuple(sorted({rank for frame in tables.values() for rank in frame["rank"].unique()})),
        _counted(events, slices.num_lost),
        {"end without begin": slices.num_lost} if slices.num_lost else {},
        _repaired(slices.spans, templates),
        tuple(dict.fromkeys(notes)),
        unread_tags(tables["spans"]) if "spans" in tables else {},
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
            place.factor,
            place.is_incremental,
        )
        for number, place in enumerate(places)
    ]
    texts = dict.fromkeys(("base", "above", "own_name", "process", "unit"), pl.String)
    counts = {"factor": pl.Float64, "is_incremental": pl.Boolean}
    schema = {"track": pl.Int64, "rank": pl.Int32, **texts, **counts}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _placed(templates: pl.DataFrame, shown: pl.DataFrame) -> pl.DataFrame:
    """Templates with the rank, track (`base`) and `key` of their events.

    Begin and end have their key in common: the track, or category and id of asynchronous ones.
    """
    placed = templates.join(shown, on="track", how="left", maintain_order="left")
    async_id = pl.struct("process", "category", "id").rank("dense").cast(pl.Int64)
    told = pl.concat_str(pl.col("category").fill_null("async"), pl.col("id"), separator=" ")
    hopping = pl.concat_str("process", told.fill_null("async"), separator=SEPARATOR)
    return placed.with_columns(
        pl.when(_IS_ASYNC).then(-async_id).otherwise("track").alias("key"),
        pl.when(_IS_ASYNC).then(hopping).otherwise(pl.col("base").fill_null(NOWHERE)).alias("base"),
    )


def _named(spans: pl.DataFrame, templates: pl.DataFrame) -> pl.DataFrame:
    """Spans with what their templates say, of which text is an Enum."""
    said = templates.select(
        "rank", track="base", name=pl.col("name").fill_null(NO_NAME), category="category"
    )
    said = said.with_columns(_enum(said[name]) for name in _TEXTS)
    return pl.concat([spans, said[spans["template"]]], how="horizontal").drop("template")


def _enum(text: pl.Series) -> pl.Series:
    return text.cast(pl.Enum(text.drop_nulls().unique(maintain_order=True)))


def _by_rank(spans: pl.DataFrame) -> Iterator[pl.DataFrame]:
    ranks = spans["rank"].unique()
    if len(ranks) == 1:
        yield spans
    else:
        yield from spans.partition_by("rank", maintain_order=True)


def _laned(spans: pl.DataFrame) -> pl.DataFrame:
    """Spans of a rank in lanes; a launch and what it launched have a number in common.

    It is a field's, else an argument's.
    """
    linked = "external" if spans["linked"].null_count() == len(spans) else "linked"
    laned = with_lanes(spans.with_columns(pl.coalesce("correlation", linked), base="track"))
    return laned.with_columns(pl.col("base").cast(laned.schema["track"])).drop("linked", "external")


def _of_rank(
    spans: pl.DataFrame, candidates: pl.DataFrame, end_args: pl.Series
) -> tuple[dict[str, pl.DataFrame], Iterator[str]]:
    """The tables of a rank, steps and collectives as far as its spans imply them; and notes."""
    laned = spans.drop("rank", "event", "step")
    steps, tagged, notes = derived_steps(laned)
    tagged = tagged.with_columns(pl.coalesce(spans["step"], "step").alias("step"))
    told = with_end_args(
        candidates.select("args").lazy(), end_args.gather(candidates["row"])
    ).collect()
    calls = tagged.join(candidates.select("row", told["args"]), on="row", maintain_order="left")
    tables = {
        "spans": tagged.drop("base"),
        "steps": steps,
        "collectives": infer_collectives(_as_text(calls), tagged),
    }
    return tables, notes


def _as_text(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(cs.enum().cast(pl.String))


def _together(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Rows of all ranks; those of spans, which have one of their own, in the order of the file."""
    if len(parts) == 1:
        return parts[0]
    rows = pl.concat(
        part.with_columns(pl.col("track").cast(pl.String)) if "track" in part.columns else part
        for part in parts
    )
    return rows.sort("row") if "row" in rows.columns else rows


def _with_args(spans: pl.DataFrame, args: list[Part], end_args: pl.Series) -> Frame:
    if end_args.null_count() == len(end_args):
        return Spooled(spans, "args", args)
    return beside(spans.lazy(), with_end_args(unpacked("args", args), end_args))


def _flows(arrows: pl.DataFrame, shown: pl.DataFrame, ranks: list[pl.DataFrame]) -> pl.DataFrame:
    """Ends of arrows, each on the lane of its slice, else of the latest begun on its track."""
    placed = arrows.join(shown.select("track", "rank", "base"), on="track", how="left")
    begun = pl.concat([_touched(spans, placed) for spans in ranks] or [_NO_LANES])
    placed = placed.join(begun.select("event", "lane"), on="event", how="left")
    latest = begun.filter(pl.col("form") != "instant").sort("ts_ns", maintain_order=True)
    placed = placed.sort("ts_ns", "event", maintain_order=True).join_asof(
        latest.select("ts_ns", "rank", "base", latest="lane"),
        on="ts_ns",
        by=["rank", "base"],
        check_sortedness=False,
    )
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
    track = pl.coalesce("lane", "latest", "base").alias("track")
    named = placed.with_columns(*of_arrow, track, pl.coalesce("end", end).alias("end"))
    columns = ("rank", "ts_ns", pl.coalesce("flow", "arrow"), "name", "category", "track", "end")
    return named.select(columns)


def _touched(spans: pl.DataFrame, arrows: pl.DataFrame) -> pl.DataFrame:
    """Spans that arrows touch, and all of tracks with several lanes on which they may."""
    several = spans.filter(pl.col("track") != pl.col("base"))["base"].unique()
    several = several.filter(several.cast(pl.String).is_in(arrows["base"].implode()))
    touched = pl.col("event").is_in(arrows["event"].implode())
    found = spans.filter(touched | pl.col("base").is_in(several.implode()))
    return _as_text(found.select("rank", "event", "ts_ns", "base", "form", lane="track"))


def _counters(samples: pl.DataFrame, shown: pl.DataFrame) -> pl.DataFrame:
    placed = samples.join(shown, on="track", how="left", maintain_order="left")
    value = pl.col("value") * pl.col("factor")
    grown = value.cum_sum().over("track")
    return placed.select(
        "rank",
        "ts_ns",
        pl.col("above").alias("track"),
        pl.col("own_name").alias("name"),
        "unit",
        pl.when("is_incremental").then(grown).otherwise(value).alias("value"),
    )


def _counted(events: EventTables, num_lost: int) -> dict[str, int]:
    """How many events of each role were read, of ends those that end something."""
    num = (
        events.events["template"]
        .value_counts(name="num")
        .join(events.templates.with_row_index("template"), on="template")
    )
    role = pl.col("role").replace("async end", "end")
    counts: dict[str, int] = dict(num.group_by(role).agg(pl.col("num").sum()).iter_rows())
    counts["end"] = counts.get("end", 0) - num_lost
    return {role: num for role, num in sorted(counts.items()) if num}


def _repaired(spans: pl.DataFrame, templates: pl.DataFrame) -> dict[str, int]:
    found = {
        "begin without end, kept as unfinished": (spans["form"] == "unfinished").sum(),
        "no name": templates["name"].is_null().gather(spans["template"]).sum(),
    }
    return {what: int(num) for what, num in found.items() if num}
