"""Slices out of the events of a Perfetto file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from stepscope.ingest.derive.brackets import NO_END, Flags, Ints, brackets
from stepscope.ingest.derive.pairs import pair
from stepscope.ingest.readers.args_numbers import CORRELATION, EXTERNAL_ID, number_in
from stepscope.ingest.readers.perfetto.collect import EventTables
from stepscope.ingest.schema import SPAN_FORMS

_HALVES = ("begin", "end", "async begin", "async end")
_FORM = pl.Enum(SPAN_FORMS)


@dataclass(frozen=True, slots=True)
class Slices:
    """Slices and instants in the order of the file, and how many ends nothing began.

    `spans`: row (of the arguments), event, form (SPAN_FORMS), template (which of the templates of
    events), ts_ns, dur_ns, correlation, step, linked and external; `end_args` are the arguments of
    their ends.
    """

    spans: pl.DataFrame
    end_args: pl.Series
    num_lost: int


def slices_of(events: EventTables, keys: pl.Series) -> Slices:
    """Slices of events, whose templates have a `key` each.

    An end belongs to the latest open begin of its key, and of its name where it has one.
    """
    end, num_lost = _ends(events, keys)
    begun = events.begun.with_row_index("row")
    at = begun["event"].to_numpy()
    ts_ns, template = events.events["ts_ns"], events.events["template"].gather(at)
    its_end = pl.Series(end[at]).replace(NO_END, None)
    end_args = _end_args(events.end_args, its_end)
    lasting = ts_ns.gather(its_end) - ts_ns.gather(at)
    spans = begun.with_columns(
        template.alias("template"),
        ts_ns.gather(at).alias("ts_ns"),
        pl.coalesce("dur_ns", lasting).alias("dur_ns"),
        *(
            pl.coalesce(name, number_in(end_args, key)).alias(name)
            for name, key in (("linked", CORRELATION), ("external", EXTERNAL_ID))
        ),
    )
    form = _form(events.templates, template, spans["dur_ns"])
    return Slices(spans.with_columns(form), end_args, num_lost)


def with_end_args(args: pl.LazyFrame, end_args: pl.Series) -> pl.LazyFrame:
    """Arguments of begins with those of ends, row by row, as one object where both have some."""
    both = pl.concat([args, end_args.alias("end_args").to_frame().lazy()], how="horizontal")
    first, second = pl.col("args").str.strip_suffix("}"), pl.col("end_args").str.strip_prefix("{")
    joined = pl.concat_str(first, second, separator=", ")
    return both.select(pl.coalesce(joined, "args", "end_args").alias("args"))


def _ends(events: EventTables, keys: pl.Series) -> tuple[Ints, int]:
    """The end of each event that begins something, and how many ends have no begin."""
    templates = events.templates.select("role", "name", key=keys)
    template = events.events["template"].to_numpy()
    is_half = templates["role"].is_in(_HALVES).to_numpy()[template]
    halves = np.flatnonzero(is_half)
    ordered = halves[np.argsort(events.events["ts_ns"].to_numpy()[halves], kind="stable")]
    is_named = _has_named_ends(templates)[template[ordered]]
    end = np.full(len(template), NO_END)
    plain, named = ordered[~is_named], ordered[is_named]
    key = templates["key"].to_numpy()[template[plain]]
    is_begin = templates["role"].str.ends_with("begin").to_numpy()
    found, is_lost = brackets(key, is_begin[template[plain]])
    end[plain[found != NO_END]] = plain[found[found != NO_END]]
    said = templates.with_columns(pl.col("key").cast(pl.String), is_begin=is_begin)
    rows = said.select("key", "name", "is_begin")[template[named]]
    by_name, lost = pair(
        (event, *row) for event, row in zip(named.tolist(), rows.iter_rows(), strict=True)
    )
    end[[*by_name.keys()]] = [*by_name.values()]
    return end, int(is_lost.sum()) + len(lost)


def _has_named_ends(templates: pl.DataFrame) -> Flags:
    is_one = pl.col("role").str.ends_with("end") & pl.col("name").is_not_null()
    found: Flags = templates.select(is_one.any().over("key")).to_series().to_numpy()
    return found


def _end_args(end_args: pl.DataFrame, its_end: pl.Series) -> pl.Series:
    """The arguments of the end of each begun event."""
    ends = pl.DataFrame({"event": its_end.cast(end_args.schema["event"])})
    if end_args.is_empty():
        return pl.repeat(None, len(ends), dtype=pl.String, eager=True)
    return ends.join(end_args, on="event", how="left", maintain_order="left")["args"]


def _form(templates: pl.DataFrame, template: pl.Series, dur_ns: pl.Series) -> pl.Series:
    role = pl.col("role")
    ended = (
        pl.when(role.str.ends_with("instant"))
        .then(pl.lit("instant"))
        .when(role == "async begin")
        .then(pl.lit("async"))
        .otherwise(pl.coalesce("told_form", pl.lit("slice")))
    )
    found = templates.select(ended.cast(_FORM)).to_series().gather(template)
    is_endless = dur_ns.is_null() & (found != "instant")
    return (
        pl.select(pl.when(is_endless).then(pl.lit("unfinished", _FORM)).otherwise(found))
        .to_series()
        .alias("form")
    )
