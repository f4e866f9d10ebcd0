"""Spans, flows and counters out of a file's events, and what became of every event."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import polars as pl

from stepscope.ingest.derive.axis import NONE, latest, numbered
from stepscope.ingest.derive.collectives.inferred import tells_of_collectives
from stepscope.ingest.derive.lanes import with_lanes
from stepscope.ingest.readers.args_numbers import CORRELATION, EXTERNAL_ID, number_in
from stepscope.ingest.readers.chrome.arrows import with_launches
from stepscope.ingest.readers.chrome.ascend import Npu, with_npu
from stepscope.ingest.readers.chrome.collect import Collected
from stepscope.ingest.readers.chrome.counters import counter_rows
from stepscope.ingest.readers.chrome.flows import BOUND_ENDS, UNDIRECTED
from stepscope.ingest.readers.chrome.slices import NO_NAME, async_id, slices_of
from stepscope.ingest.readers.chrome.tracks import NAMING, with_tracks
from stepscope.ingest.readers.xla_lines import with_devices
from stepscope.ingest.schema import SPAN_FORMS
from stepscope.ingest.storage.spool import Spool

ROLES = {
    "X": "slice", "B": "begin", "E": "end", "i": "instant", "I": "instant", "R": "instant",
    "P": "instant", "C": "counter", "M": "name", "s": "flow", "t": "flow", "f": "flow",
    "b": "async begin", "S": "async begin", "e": "async end", "F": "async end",
    "n": "async instant", "T": "async instant", "p": "async instant",
    **dict.fromkeys(BOUND_ENDS, "flow"),
}  # fmt: skip
FLOW_ENDS = {"s": "start", "t": "step", "f": "finish", **BOUND_ENDS}
_TEXTS = ("track", "name", "category")
_FORM = pl.Enum(SPAN_FORMS)
NO_TS, NO_TIME, NO_ID = "no ts", "ts is not a number of this era", "no id"
"""Why events of several roles cannot be read."""


@dataclass(frozen=True, slots=True)
class ChromeTables:
    """Tables of a file without rank and step, and its events counted: each read or skipped, once.

    Text that few distinct values make up is an Enum. `spans` are complete events in the order of
    the file, then those made of others. They have one column more than the table, `base`, the
    track before it was given lanes, and not `args`, which are packed row by row; `candidates` has
    them for spans that tell of collectives (span, args). `tags` are those of steps that stand in
    another field than the name, null where none does. `num_tied` counts what arrows alone tie to
    its launch; `npu` is what Ascend's tools say, None where none of them wrote the file.
    """

    spans: pl.DataFrame
    tags: pl.Series
    args: Spool
    candidates: pl.DataFrame
    flows: pl.DataFrame
    counters: pl.DataFrame
    read: dict[str, int]
    skipped: dict[str, int]
    repaired: dict[str, int]
    num_tied: int
    npu: Npu | None


def chrome_tables(events: Collected) -> ChromeTables:
    """Sort events into tables, tracks named and slices in lanes."""
    templates = events.templates.with_columns(_role())
    of_template = events.others["template"].to_numpy()
    is_name, is_flow = (
        pl.Series((templates["role"] == role).fill_null(value=False).to_numpy()[of_template])
        for role in ("name", "flow")
    )
    templates = with_tracks(templates, _with_template(events.others.filter(is_name), templates))
    rest = _judged(_with_template(events.others.filter(~is_flow), templates))
    arrows = _judged_arrows(events.others, is_flow)
    good = rest.filter(pl.col("skip").is_null())
    slices, endless, repaired = slices_of(good)
    counters, numberless = counter_rows(good.filter(pl.col("role") == "counter"))
    lost = pl.concat([endless, numberless])
    fates = rest.join(lost, on="event", how="left").select("ph", pl.coalesce("skip", "lost"))
    spans = with_lanes(_spans(events.slices, templates, slices), _order(events.slices, slices))
    spans, tags = with_devices(spans, events.numbers)
    events.args.add_texts(slices["args"])
    ends = arrows.filter(pl.col("skip").is_null())
    flows = _flows(ends, templates, spans)
    spans, tags, npu = with_npu(spans, tags, events.args)
    spans, num_tied = with_launches(spans, flows)
    kept = fates.filter(pl.col("skip").is_null())["ph"]
    return ChromeTables(
        spans,
        tags,
        events.args,
        _candidates(events, slices),
        flows,
        counters,
        _counted(kept, _enum(templates, "ph").gather(ends["template"]), X=len(events.slices)),
        _counted(fates["skip"].drop_nulls(), arrows["skip"].drop_nulls()),
        _repaired(events, templates, repaired),
        num_tied,
        npu,
    )


def _with_template(rows: pl.DataFrame, templates: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([rows.drop("template"), templates[rows["template"]]], how="horizontal")


def _judged(events: pl.DataFrame) -> pl.DataFrame:
    return events.with_columns(_reason_to_skip(events["ph"]))


def _judged_arrows(others: pl.DataFrame, is_flow: pl.Series) -> pl.DataFrame:
    """Ends of arrows, of which there are as many as slices: no more of them than is needed."""
    arrows = others.select("event", "template", "ts_ns", "has_ts", "id", "id2").filter(is_flow)
    return arrows.with_columns(
        pl.when(~pl.col("has_ts"))
        .then(pl.lit(NO_TS))
        .when(pl.col("ts_ns").is_null())
        .then(pl.lit(NO_TIME))
        .when(pl.coalesce("id", "id2").is_null())
        .then(pl.lit(NO_ID))
        .alias("skip")
    )


def _repaired(
    events: Collected, templates: pl.DataFrame, repaired: dict[str, int]
) -> dict[str, int]:
    is_nameless = templates["name"].is_null()
    nameless = is_nameless.gather(events.slices["template"]).sum() if is_nameless.any() else 0
    return dict(Counter(repaired) + events.repaired + Counter({"no name": int(nameless)}))


def _spans(plain: pl.DataFrame, templates: pl.DataFrame, slices: pl.DataFrame) -> pl.DataFrame:
    """Spans of the slices that are no more than their template and times, and of all others."""
    said = templates.select("track", pl.col("name").fill_null(NO_NAME), category="cat")
    said = pl.concat([said, slices.select(_TEXTS)])
    said = said.select(_enum(said, name) for name in _TEXTS)
    others = pl.int_range(len(templates), len(said), dtype=pl.UInt32, eager=True)
    plain_form = pl.repeat("slice", len(plain), dtype=_FORM, eager=True)
    return said[pl.concat([plain["template"], others])].with_columns(
        pl.col("track").alias("base"),
        pl.concat([plain_form, slices["form"].cast(_FORM)]).alias("form"),
        *(pl.concat([plain[name], slices[name]], rechunk=True) for name in ("ts_ns", "dur_ns")),
        _correlation(plain, slices["args"]),
    )


def _order(plain: pl.DataFrame, slices: pl.DataFrame) -> pl.Series | None:
    """In which order spans stand in the file, where that is not the order of the rows."""
    return pl.concat([plain["event"], slices["event"]]) if len(slices) else None


def _counted(*texts: pl.Series, **others: int) -> dict[str, int]:
    """How often each text is there, the most frequent first."""
    counts = Counter(others)
    for each in texts:
        counts.update(dict(each.value_counts().iter_rows()))
    found = sorted(counts.items(), key=lambda count: (-count[1], count[0]))
    return {text: number for text, number in found if number}


def _role() -> pl.Expr:
    return pl.col("ph").replace_strict(ROLES, default=None, return_dtype=pl.String).alias("role")


def _reason_to_skip(ph: pl.Series) -> pl.Expr:
    """Why an event cannot be read, null when it can; the first reason counts."""
    role, is_name = pl.col("role"), pl.col("role") == "name"
    is_async = role.str.starts_with("async")
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
        .then(pl.lit(NO_TS))
        .when(pl.col("ts_ns").is_null())
        .then(pl.lit(NO_TIME))
        .when((role == "slice") & pl.col("has_dur") & pl.col("dur_ns").is_null())
        .then(pl.lit("dur is not a number of this era"))
        .when(is_async & async_id().is_null())
        .then(pl.lit(NO_ID))
        .alias("skip")
    )


def _unread(ph: str) -> str:
    if not ph:
        return "no ph"
    if ph == UNDIRECTED:
        return ph
    return (
        f"ph {ph}" if len(ph) == 1 and ph.isascii() and ph.isprintable() else "ph of another kind"
    )


def _correlation(plain: pl.DataFrame, args: pl.Series) -> pl.Series:
    """The number that ties a launch to what it launched, of the plain slices and the others."""
    best = plain["correlation"]
    if plain["is_external"].any():
        best = best.set(plain["is_external"], None)
    found = pl.concat([best, number_in(args, CORRELATION)])
    if found.null_count() == len(found):
        found = pl.concat([plain["correlation"], number_in(args, EXTERNAL_ID)])
    return found.alias("correlation")


def _enum(said: pl.DataFrame, name: str) -> pl.Series:
    """A text column with a number for each different text."""
    return said[name].cast(pl.Enum(said[name].drop_nulls().unique(maintain_order=True)))


def _candidates(events: Collected, slices: pl.DataFrame) -> pl.DataFrame:
    """Spans that tell of collectives, and their args."""
    others = slices.select("args").with_row_index("row", offset=len(events.slices))
    found = pl.concat([events.candidates, others.filter(tells_of_collectives(slices["name"]))])
    return found.rename({"row": "span"})


def _flows(ends: pl.DataFrame, templates: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Ends of arrows, each on the lane of the latest slice begun there."""
    ends_of_flows = pl.Enum(sorted(set(FLOW_ENDS.values())))
    end = templates["ph"].replace_strict(FLOW_ENDS, default=None, return_dtype=ends_of_flows)
    track = templates["track"].cast(spans.schema["track"])
    said = templates.select(
        track, _enum(templates, "name"), _enum(templates, "cat").alias("category"), end=end
    )
    flows = ends.select("ts_ns", flow=pl.coalesce("id", "id2"))
    flows = pl.concat([flows, said[ends["template"]]], how="horizontal")
    return flows.with_columns(_in_lanes(flows, spans))


def _in_lanes(ends: pl.DataFrame, spans: pl.DataFrame) -> pl.Series:
    """Tracks of ends; where one has several lanes, that of the latest slice begun on the track."""
    base, lane, own = (
        numbered(texts)[1] for texts in (spans["base"], spans["track"], ends["track"])
    )
    split = np.unique(base[base != lane])
    if not split.size:
        return ends["track"]
    rows = np.flatnonzero(np.isin(own, split))
    is_begun = np.isin(base, split) & (spans["form"] != "instant").to_numpy()
    ts_ns, begun_ns = ends["ts_ns"].to_numpy(), spans["ts_ns"].to_numpy()
    found = latest(own[rows], ts_ns[rows], base[is_begun], begun_ns[is_begun])
    is_there = found != NONE
    begun = np.flatnonzero(is_begun)[found[is_there]]
    return ends["track"].scatter(rows[is_there], spans["track"].gather(begun))
