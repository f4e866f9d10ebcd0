"""The core groups: AIC, AIV0 and AIV1 of each, and what held a core without running."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app import palette
from stepscope.app.printable import plain
from stepscope.app.timeline.lanes.lane import (
    LaneName,
    LaneSpans,
    Subject,
    clipped,
    end_of,
    placeable,
    several_ranks,
    span_rows,
)
from stepscope.ingest.derive.states import with_held
from stepscope.ingest.schema import CORE_KINDS
from stepscope.ingest.trace import Trace

STATE_OF_SHAPE = {"AIC": palette.AIC, "AIV": palette.AIV, "MIX": palette.MIX, "DUMMY": palette.IDLE}
KEY = ["rank", "group", "core_kind", "core"]
ROWS_AT_ONCE, ROWS_WORTH_A_LANE = 4 << 20, 64 << 10
"""Rows that are looked for at once, and laid out at once where they are of several lanes."""


def core_lanes(trace: Trace, last_ns: int) -> LaneSpans:
    """Lay out `core_spans`; a block that never ended reaches `last_ns`."""
    rows = placeable(trace, "core_spans", "core")
    seen = rows.select(KEY).unique().collect()
    lanes = _lanes(seen)
    ranks = lanes["rank"].unique().to_list()
    names = tuple(_name(*key, ranks=ranks) for key in lanes.select(KEY).iter_rows())
    return LaneSpans(names, _parts(rows, seen, lanes, last_ns))


def _parts(
    rows: pl.LazyFrame, seen: pl.DataFrame, lanes: pl.DataFrame, last_ns: int
) -> Iterator[pl.DataFrame]:
    """The spans of some lanes after others, so that few rows are laid out at a time."""
    state = pl.col("shape").replace_strict(
        STATE_OF_SHAPE, default=palette.UNKNOWN, return_dtype=pl.UInt8
    )
    told = ["ref", "ts_ns", "dispatch_ns", "end_ns"]
    if seen.select("rank", "core").n_unique() < len(seen):  # a core that is on several lanes
        found = rows.select(*told, *KEY, state=state).collect()
        joined = found.join(lanes, on=KEY, nulls_equal=True, maintain_order="left")
        yield _laid_out(joined, last_ns)
        return
    core = pl.col("rank").cast(pl.Int64) * 2**32 + pl.col("core")
    ran = lanes.drop_nulls("core").select("lane", core=core)
    lane = core.replace_strict(ran["core"], ran["lane"], return_dtype=pl.UInt32)
    found = rows.select(*told, lane=lane, state=state).collect()
    counts = np.bincount(found["lane"].to_numpy(), minlength=len(lanes))
    is_ordered = found["lane"].is_sorted()
    for first, last in _some_lanes(counts, 0, len(counts), ROWS_AT_ONCE):
        if is_ordered:
            some = found[int(counts[:first].sum()) : int(counts[:last].sum())]
        else:
            own = pl.col("lane").is_between(first, last - 1)
            some = found.filter(own).sort("lane", maintain_order=True)
        at = 0
        for begin, until in _some_lanes(counts, first, last, ROWS_WORTH_A_LANE):
            num_rows = int(counts[begin:until].sum())
            # A lane is a core: it stands for the rank and the core, which need not be read.
            own_rows = some[at : at + num_rows].with_columns(rank=pl.lit(0), core="lane")
            yield _laid_out(own_rows, last_ns, is_one_core=own_rows["lane"].n_unique() == 1)
            at += num_rows


def _some_lanes(
    counts: npt.NDArray[np.int64], first: int, last: int, most: int
) -> Iterator[tuple[int, int]]:
    """Ranges of lanes that have at most so many rows together, or are one lane."""
    num_rows = 0
    for lane, count in enumerate(counts[first:last].tolist(), first):
        if num_rows and num_rows + count > most:
            yield first, lane
            first, num_rows = lane, 0
        num_rows += count
    if num_rows:
        yield first, last


def _laid_out(rows: pl.DataFrame, last_ns: int, *, is_one_core: bool = False) -> pl.DataFrame:
    """The spans of some rows, by lane and time: how long the core was held, and the block."""
    if is_one_core and rows["ts_ns"].is_sorted():
        rows = rows.with_columns(pl.col("ts_ns").set_sorted())
    begins = clipped(pl.col("ts_ns"))
    placed = (
        with_held(rows.lazy(), is_one_core=is_one_core)
        .select(
            "lane", "ref", "state",
            held=clipped(pl.col("held_ns")),
            start=begins,
            end=end_of(pl.col("ts_ns"), clipped(pl.col("end_ns")) - begins, last_ns),
        )
        .collect()
    )  # fmt: skip
    if not placed["lane"].is_sorted():
        placed = placed.sort("lane", maintain_order=True)
    held, start, end, lane, ref, state = (
        placed[name].to_numpy() for name in ("held", "start", "end", "lane", "ref", "state")
    )
    is_there = np.ones((len(placed), 2), np.bool_)
    is_there[:, 0] = held < start
    columns = {
        "lane": (lane, lane), "start": (held, start), "end": (start, end),
        "state": (np.full_like(state, palette.HELD), state), "ref": (ref, ref),
    }  # fmt: skip
    woven = {name: np.stack(both, axis=1)[is_there] for name, both in columns.items()}
    return span_rows(pl.DataFrame(woven), "core_spans")


def _name(
    rank: int, group: int | None, kind: str | None, core: int | None, *, ranks: list[int]
) -> LaneName:
    about: tuple[Subject, ...] = (("group", group), ("core", core))
    if group is None:
        label = f"core {core} {kind or ''}".rstrip()
        return LaneName(rank, several_ranks("in no known group", rank, ranks), plain(label), about)
    label = kind or f"core {core}"
    return LaneName(rank, several_ranks(f"group {group}", rank, ranks), plain(label), about)


def _lanes(seen: pl.DataFrame) -> pl.DataFrame:
    """Every core of every group that was seen, in order; one that never ran has no number."""
    in_group = pl.col("core_kind").is_not_null() & pl.col("group").is_not_null()
    groups = seen.filter(in_group).select("rank", "group").unique()
    kinds = pl.DataFrame({"core_kind": CORE_KINDS}, schema={"core_kind": pl.String})
    idle = groups.join(kinds, how="cross").join(seen, on=["rank", "group", "core_kind"], how="anti")
    every = pl.concat([seen, idle.with_columns(core=pl.lit(None, pl.Int32))])
    return every.sort(KEY, nulls_last=True).with_row_index("lane")
