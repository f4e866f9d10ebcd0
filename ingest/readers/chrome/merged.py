"""Profiles of several ranks that SGLang merged into one file, taken apart again.

It puts the rank before the id of each process, as in `[TP00-DP00-PP00-EP00] 83`; ids of flows and
numbers of launches stay as they were, so that those of two ranks may be alike.

The format: SGLang, `sglang/srt/utils/profile_merger.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from stepscope.ingest.readers.chrome.collect import Collected
from stepscope.ingest.storage.spool import Spool, unpacked

STRAY = "events of a process that names no rank, taken for the first rank's"
MOST_RANKS = 256
"""So many are told apart; events of others are the first rank's."""
_LABEL = r"^\[((?:TP|DP|PP|EP)\d{1,6}(?:-(?:TP|DP|PP|EP)\d{1,6}){0,3})\] "
_PLACE = re.compile(r"(TP|DP|PP|EP)(\d+)")


def by_rank(events: Collected) -> dict[str, Collected]:
    """The events of each rank by its label, the ids of its processes as they were.

    All under an empty label where the file is of one rank.
    """
    label = events.templates["pid"].str.extract(_LABEL)
    ranks = [*numbered(label.drop_nulls().unique().to_list())][:MOST_RANKS]
    if len(ranks) < 2:
        return {"": events}
    is_stray = ~label.is_in(ranks).fill_null(value=False)
    num_stray = sum(
        int(is_stray.gather(rows["template"]).sum()) for rows in (events.slices, events.others)
    )
    own = label.set(is_stray, ranks[0])
    plain = events.templates.with_columns(pl.col("pid").str.replace(_LABEL, ""))
    parts = {rank: _part(replace(events, templates=plain), own == rank) for rank in ranks}
    parts[ranks[0]].repaired.update(events.repaired + Counter({STRAY: num_stray}))
    return parts


def numbered(labels: Sequence[str]) -> dict[str, int]:
    """The number of each rank, in their order: as torch counts them where no two would have one.

    Ranks of a pipeline's stage follow each other, as those of the tensors of a stage do. Replicas
    that share nothing count from 0 each: then all are numbered in their order.
    """
    places = {label: {kind: int(at) for kind, at in _PLACE.findall(label)} for label in labels}
    num_tensor = 1 + max((place.get("TP", 0) for place in places.values()), default=0)
    found = {
        label: place.get("PP", 0) * num_tensor + place.get("TP", 0)
        for label, place in places.items()
    }
    if len(set(found.values())) < len(found):
        order = sorted(
            places, key=lambda each: [places[each].get(k, 0) for k in ("DP", "PP", "TP", "EP")]
        )
        return {label: number for number, label in enumerate(order)}
    return dict(sorted(found.items(), key=lambda rank: rank[1]))


def _part(events: Collected, is_own: pl.Series) -> Collected:
    """The events of some templates, all numbered through again but for the events themselves."""
    number = is_own.cum_sum() - 1
    template = number.gather(events.slices["template"]).cast(pl.UInt32).alias("template")
    is_slice = is_own.gather(events.slices["template"])
    is_other = is_own.gather(events.others["template"])
    other_template = number.gather(events.others["template"]).cast(pl.UInt32).alias("template")

    def own_rows(frame: pl.DataFrame) -> pl.DataFrame:
        row = (is_slice.cum_sum() - 1).gather(frame["row"]).cast(pl.UInt32).alias("row")
        return frame.with_columns(row).filter(is_slice.gather(frame["row"]))

    return Collected(
        int(is_slice.sum()) + int(is_other.sum()),
        events.templates.filter(is_own),
        events.slices.with_columns(template).filter(is_slice),
        own_texts(events.args, is_slice),
        own_rows(events.candidates),
        own_rows(events.numbers),
        events.others.with_columns(other_template).filter(is_other),
        Counter(),
    )


def own_texts(parts: Spool, is_own: pl.Series) -> Spool:
    """Packed args of some of the slices; a part of which all are wanted stays as it is."""
    kept, begin = Spool(), 0
    for part in parts:
        texts = unpacked("args", [part])
        num = int(texts.select(pl.len()).collect().item())
        own, begin = is_own.slice(begin, num), begin + num
        if own.all():
            kept.add([part])
        elif own.any():
            kept.add_texts(texts.collect()["args"].filter(own))
    return kept
