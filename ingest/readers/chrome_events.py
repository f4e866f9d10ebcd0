"""All events of a Chrome JSON file, gathered from what is kept of each window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from stepscope.ingest.limits import DEFAULTS, Limits, raised_by
from stepscope.ingest.readers.bounded import on_few_tracks
from stepscope.ingest.readers.chrome_batch import Batch, batch_of
from stepscope.ingest.readers.event_frames import events_of


@dataclass(frozen=True, slots=True)
class ChromeEvents:
    """As `Batch`, of a whole file; numbers of events and forms count through it."""

    num_events: int
    forms: pl.DataFrame
    slices: pl.DataFrame
    args: list[bytes]
    telling: pl.DataFrame
    others: pl.DataFrame
    repaired: Counter[str]


def gathered(batches: Iterable[Batch], limits: Limits = DEFAULTS) -> ChromeEvents:
    """Put batches one after the other, on as many tracks as there may be."""
    none, _ = events_of([])
    empty = batch_of(none)
    forms, slices, telling, others = [empty.forms], [empty.slices], [empty.telling], [empty.others]
    args: list[bytes] = []
    repaired: Counter[str] = Counter()
    num_events = num_forms = num_slices = 0
    for batch in batches:
        event = (pl.col("event") + num_events).cast(pl.UInt32)
        row = (pl.col("row") + num_slices).cast(pl.UInt32)
        form = (pl.col("form") + num_forms).cast(pl.UInt32)
        forms.append(batch.forms)
        slices.append(batch.slices.with_columns(event, form))
        telling.append(batch.telling.with_columns(row))
        others.append(batch.others.with_columns(event, form))
        args += [batch.args] if batch.args else []
        repaired.update(batch.repaired)
        num_events += batch.num_events
        num_forms += len(batch.forms)
        num_slices += len(batch.slices)
    tables = [pl.concat(frames) for frames in (slices, telling, others)]
    placed, is_stray = on_few_tracks(pl.concat(forms), limits.tracks)
    if is_stray.any():
        num = sum(int(is_stray.gather(tables[at]["form"]).sum()) for at in (0, 2))
        repaired[f"tracks beyond {limits.tracks:,} shown as one ({raised_by('tracks')})"] = num
    return ChromeEvents(num_events, placed, tables[0], args, tables[1], tables[2], repaired)
