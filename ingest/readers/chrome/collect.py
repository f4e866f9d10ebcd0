"""What is kept of events, of a window or a file: slices as numbers, args packed, the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from stepscope.ingest.derive.collectives.inferred import tells_of_collectives
from stepscope.ingest.limits import DEFAULTS, Limits, raised_by
from stepscope.ingest.readers.chrome.bounded import on_few_tracks, within
from stepscope.ingest.readers.chrome.frames import NUMBERS, Events, events_of
from stepscope.ingest.readers.xla_lines import numbers_of
from stepscope.ingest.storage.spool import Spool


@dataclass(frozen=True, slots=True)
class Collected:
    """Events of a window, or of a file; numbers of events, templates and rows count through it.

    templates   as `Events.templates`
    slices      complete events as they should be: event, template, ts_ns, dur_ns, correlation,
                is_external (of the latter: it is the other number that may serve)
    args        the args of `slices`, packed in parts that follow each other, or to be packed
    candidates  row and args of slices that tell of collectives
    numbers     row and numbers of steps and launches that `xla_lines.numbers_of` found in slices
    others      all other events: their number (`event`) and the columns of `Events.rows` but
                `NUMBERS`
    repaired    how many events were cut to the limits, by reason
    """

    num_events: int
    templates: pl.DataFrame
    slices: pl.DataFrame
    args: Spool
    candidates: pl.DataFrame
    numbers: pl.DataFrame
    others: pl.DataFrame
    repaired: Counter[str]


def collected(events: Events, limits: Limits = DEFAULTS) -> Collected:
    """Sort the events of a window into what is kept of them."""
    events, repaired = within(events, limits)
    told = events.templates.select(is_complete=pl.col("ph") == "X").with_columns(
        is_candidate=tells_of_collectives(events.templates["name"])
    )
    rows = events.rows.with_row_index("event")
    is_plain = (
        told["is_complete"].gather(rows["template"])
        & rows.select(
            pl.col("ts_ns").is_not_null() & (pl.col("dur_ns") >= 0).fill_null(value=False)
        ).to_series()
    )
    slices, others = rows, rows.clear()
    if not is_plain.all():
        slices, others = rows.filter(is_plain), rows.filter(~is_plain)
    is_candidate = told["is_candidate"].gather(slices["template"])
    return Collected(
        len(rows),
        events.templates,
        slices.select("event", "template", "ts_ns", "dur_ns", *_correlation(slices)),
        Spool(*[slices["args"]] * bool(len(slices))),
        slices.select("args")
        .with_row_index("row")
        .filter(is_candidate)
        .with_columns(_copied("args")),
        numbers_of(slices, events.templates["cat"].is_not_null().gather(slices["template"])),
        others.drop(NUMBERS).with_columns(_copied("id", "id2", "args")),
        Counter(repaired),
    )


def together(windows: Iterable[Collected], limits: Limits = DEFAULTS) -> Collected:
    """Put what is kept of windows one after the other, on as many tracks as there may be."""
    none, _ = events_of([])
    empty = collected(none)
    templates, slices, candidates, numbers, others = (
        [empty.templates],
        [empty.slices],
        [empty.candidates],
        [empty.numbers],
        [empty.others],
    )
    args = Spool()
    repaired: Counter[str] = Counter()
    num_events = num_templates = num_slices = 0
    for each in windows:
        event = (pl.col("event") + num_events).cast(pl.UInt32)
        row = (pl.col("row") + num_slices).cast(pl.UInt32)
        template = (pl.col("template") + num_templates).cast(pl.UInt32)
        templates.append(each.templates)
        slices.append(each.slices.with_columns(event, template))
        candidates.append(each.candidates.with_columns(row))
        numbers.append(each.numbers.with_columns(row))
        others.append(each.others.with_columns(event, template))
        args.take(each.args)
        repaired.update(each.repaired)
        num_events += each.num_events
        num_templates += len(each.templates)
        num_slices += len(each.slices)
    args.pack_ahead()
    tables = [pl.concat(frames) for frames in (slices, candidates, numbers, others)]
    placed, is_stray = on_few_tracks(pl.concat(templates), limits.tracks)
    if is_stray.any():
        num = sum(int(is_stray.gather(tables[at]["template"]).sum()) for at in (0, 3))
        repaired[f"tracks beyond {limits.tracks:,} shown as one ({raised_by('tracks')})"] = num
    return Collected(num_events, placed, tables[0], args, tables[1], tables[2], tables[3], repaired)


def _copied(*names: str) -> pl.Expr:
    """Text by itself: what was cut out of a window keeps the whole window in memory."""
    return pl.col(names) + ""


def _correlation(slices: pl.DataFrame) -> list[pl.Series]:
    """The number that may tie a launch to what it launched, and whether it is the second best.

    "External id" counts something else than "correlation"; it serves where there is none of the
    latter in the whole file, as without a device.
    """
    is_external = slices["correlation"].null_count() == len(slices)
    number = slices["external_id"] if is_external else slices["correlation"]
    flag = pl.repeat(is_external, len(slices), dtype=pl.Boolean, eager=True)
    return [number.alias("correlation"), flag.alias("is_external")]
