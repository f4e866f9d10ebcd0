"""The core groups: AIC, AIV0 and AIV1 of each, and what held a core without running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

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
from stepscope.app.timeline.spans.held_cores import held_since
from stepscope.app.timeline.spans.in_parts import one_ahead, some_after_others
from stepscope.app.timeline.spans.mixed_rows import MixedRows
from stepscope.app.timeline.spans.woven import in_turn, woven
from stepscope.ingest.derive.states import with_held
from stepscope.ingest.schema import CORE_KINDS
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

STATE_OF_SHAPE = {"AIC": palette.AIC, "AIV": palette.AIV, "MIX": palette.MIX, "DUMMY": palette.IDLE}
KEY = ["rank", "group", "core_kind", "core"]
PLACED = ["rank", "ts_ns", "core"]
CORE = (pl.col("rank").cast(pl.Int64) * 2**32 + pl.col("core")).alias("core")
"""A core among those of all ranks."""
ROWS_AT_ONCE, ROWS_WORTH_A_LANE = 2 << 20, 64 << 10
"""Rows that are read at once, and laid out at once where they are of several lanes."""


def core_lanes(trace: Trace, last_ns: int) -> LaneSpans:
    """Lay out `core_spans`; a block that never ended reaches `last_ns`."""
    rows, ref = _placed(trace), pl.col("ref")
    seen = rows.group_by(KEY).agg(num=pl.len(), first=ref.min(), last=ref.max()).collect()
    lanes = _lanes(seen.select(KEY))
    ranks = lanes["rank"].unique().to_list()
    names = tuple(_name(*key, ranks=ranks) for key in lanes.select(KEY).iter_rows())
    found = lanes.join(seen, on=KEY, nulls_equal=True, maintain_order="left")
    return LaneSpans(names, _parts(trace, found, last_ns))


def _placed(trace: Trace) -> pl.LazyFrame:
    """Blocks that have a core and a time; where all have, that is known without reading them."""
    has_none = pl.any_horizontal(pl.col(PLACED).is_null())
    if trace.core_spans.filter(has_none).select(pl.len()).collect().item():
        return placeable(trace, "core_spans", "core")
    return trace.core_spans.with_row_index("ref")


def _parts(trace: Trace, lanes: pl.DataFrame, last_ns: int) -> Iterator[pl.DataFrame]:
    """The spans of some lanes after others, so that few rows are laid out at a time.

    `lanes` are those with any blocks in their order, how many (`num`), their `first` and `last`.
    """
    if lanes.select("rank", "core").n_unique() < len(lanes):  # a core that is on several lanes
        rows = _told(placeable(trace, "core_spans", "core"), *KEY).collect()
        joined = rows.join(lanes, on=KEY, nulls_equal=True, maintain_order="left")
        yield _laid_out(joined, last_ns)
        return
    for some, own in one_ahead(_by_lane(trace, lanes)):
        at = 0
        for begin, until in some_after_others(own["num"].to_list(), ROWS_WORTH_A_LANE):
            num_rows = int(own["num"][begin:until].sum())
            part = some[at : at + num_rows]
            if until - begin == 1:
                yield _of_one_core(part, own["lane"][begin], last_ns)
            else:
                yield _of_cores(part, own[begin:until], last_ns)
            at += num_rows


def _told(rows: pl.LazyFrame, *more: str | pl.Expr) -> pl.LazyFrame:
    """What is laid out of blocks, and more columns."""
    state = pl.lit(palette.UNKNOWN, pl.UInt8)
    for shape, known in STATE_OF_SHAPE.items():  # asked in turn takes half as long as looked up
        state = pl.when(shape=shape).then(pl.lit(known, pl.UInt8)).otherwise(state)
    given = pl.coalesce("dispatch_ns", "ts_ns")
    return rows.select("ref", "ts_ns", *more, state=state, dispatch_ns=given, end_ns="end_ns")


def _by_lane(trace: Trace, lanes: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """The rows of some lanes after others, lane by lane in the order of the table; these lanes."""
    num_rows = int(lanes["num"].sum())
    is_apart = (lanes["last"] - lanes["first"] + 1 == lanes["num"]).all()
    if num_rows > ROWS_AT_ONCE and is_apart and len(lanes) <= num_rows // ROWS_WORTH_A_LANE:
        yield from _apart(trace, lanes)
        return
    if num_rows <= ROWS_AT_ONCE:
        found = _told(placeable(trace, "core_spans", "core"), CORE).collect()
        lane = pl.Series("lane", _lane_of(found, lanes))
        is_by_lane = lane.is_sorted()
        yield found if is_by_lane else found[np.argsort(lane.to_numpy(), kind="stable")], lanes
        return
    with closing(MixedRows(dict(lanes.select("lane", "num").iter_rows()))) as mixed:
        for first in range(0, trace.num_rows("core_spans"), ROWS_AT_ONCE):
            some = _told(_rows(trace, first, ROWS_AT_ONCE).drop_nulls(PLACED), CORE).collect()
            mixed.add(some, _lane_of(some, lanes))
        for begin, until in some_after_others(lanes["num"].to_list(), ROWS_AT_ONCE):
            yield mixed.of(lanes["lane"][begin:until].to_list()), lanes[begin:until]


def _lane_of(rows: pl.DataFrame, lanes: pl.DataFrame) -> npt.NDArray[np.uint32]:
    """The lane of each row by its core: there are few, so that a search takes some steps."""
    known = lanes.select("lane", CORE).sort("core")
    place = np.searchsorted(known["core"].to_numpy(), rows["core"].to_numpy())
    return known["lane"].to_numpy().take(place)


def _apart(trace: Trace, lanes: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """The same of lanes of which each is a range of rows."""
    for begin, until in some_after_others(lanes["num"].to_list(), ROWS_AT_ONCE):
        own = lanes[begin:until]
        follows = (own["first"] == own["last"].shift(1) + 1).fill_null(value=False)
        runs = own.group_by(run=(~follows).cum_sum(), maintain_order=True)
        ranges = runs.agg(pl.col("first").min(), pl.col("num").sum()).select("first", "num")
        yield pl.concat(_told(_rows(trace, *each)).collect() for each in ranges.iter_rows()), own


def _rows(trace: Trace, first: int, num: int) -> pl.LazyFrame:
    """A range of rows; numbered behind the cut, else all before them are read to be counted."""
    return trace.core_spans.slice(first, num).with_row_index("ref", offset=first)


def _of_cores(rows: pl.DataFrame, lanes: pl.DataFrame, last_ns: int) -> pl.DataFrame:
    """The spans of the rows of some lanes, of which each is a core."""
    lane = pl.Series("lane", np.repeat(lanes["lane"].to_numpy(), lanes["num"].to_numpy()))
    return _laid_out(rows.with_columns(lane, rank=pl.lit(0), core=lane), last_ns)


def _laid_out(rows: pl.DataFrame, last_ns: int) -> pl.DataFrame:
    """The spans of some rows, by lane and time: how long the core was held, and the block."""
    begins = clipped(pl.col("ts_ns"))
    placed = (
        with_held(rows.lazy())
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
    columns = ("lane", "ref", "state", "held", "start", "end")
    lane, ref, state, held, start, end = (placed[name].to_numpy() for name in columns)
    found = woven((held, start, end), state, ref, palette.HELD)
    return span_rows(
        pl.DataFrame({**found, "lane": in_turn((lane, lane), held < start)}), "core_spans"
    )


def _of_one_core(rows: pl.DataFrame, lane: int, last_ns: int) -> pl.DataFrame:
    """As `_laid_out`, of the rows of one lane, with arrays."""
    if not rows["ts_ns"].is_sorted():
        rows = rows.sort("ts_ns", maintain_order=True)
    ref, state, ts_ns, given = (
        rows[name].to_numpy() for name in ("ref", "state", "ts_ns", "dispatch_ns")
    )
    held = held_since(ts_ns, given, rows["end_ns"].fill_null(FAR_NS).to_numpy())
    start = np.clip(ts_ns, -FAR_NS, FAR_NS)
    end = np.clip(rows["end_ns"].fill_null(last_ns).to_numpy(), -FAR_NS, FAR_NS)
    np.maximum(end, start, out=end)
    np.clip(held, -FAR_NS, FAR_NS, out=held)
    found = pl.DataFrame(woven((held, start, end), state, ref, palette.HELD))
    return span_rows(found.with_columns(lane=pl.lit(lane, pl.UInt32)), "core_spans")


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
