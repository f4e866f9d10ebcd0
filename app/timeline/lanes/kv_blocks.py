"""The map of KV blocks: a lane for each block, a span for each time that a request owned it.

Owners have colours, as far as possible such that who follows on a block has another one. How many
blocks were owned at a time is a lane of its own, which is there while the others are collapsed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app import palette
from stepscope.app.timeline.lanes.counters import Counter
from stepscope.app.timeline.lanes.lane import (
    Ints,
    LaneName,
    LaneSpans,
    clipped,
    several_ranks,
    span_rows,
)
from stepscope.app.timeline.lanes.texts_by_number import numbers
from stepscope.app.timeline.span_index import Section
from stepscope.ingest.derive.kv_blocks import BLOCK, block_spans
from stepscope.ingest.trace import Trace

KV_BLOCKS = "KV blocks"
IN_USE = "in use"
MOST_ROUNDS = 16
NUM_COLOURS = len(palette.OWNERS)
Numbers = npt.NDArray[np.int64]


def block_lanes(trace: Trace, last_ns: int) -> LaneSpans:
    """Lay out `allocations` of KV blocks; what was never given back reaches `last_ns`."""
    spans = block_spans(trace)
    if spans.is_empty():
        return LaneSpans((), [])
    rank, block = (spans[name].to_numpy() for name in BLOCK)
    begins = np.ones(len(spans), np.bool_)
    begins[1:] = (rank[1:] != rank[:-1]) | (block[1:] != block[:-1])
    number = begins.cumsum() - 1
    lane = pl.Series("lane", number)
    ranks = spans["rank"].unique().to_list()
    blocks = spans.select(BLOCK)[np.flatnonzero(begins)]
    names = tuple(
        LaneName(rank, several_ranks("", rank, ranks), f"block {block}", (("block", block),))
        for rank, block in blocks.iter_rows()
    )
    placed = spans.select(
        lane, "ref",
        start=clipped(pl.col("from_ns")),
        end=clipped(pl.max_horizontal("from_ns", pl.col("to_ns").fill_null(last_ns))),
        state=_states(spans, number),
    )  # fmt: skip
    return LaneSpans(names, [span_rows(placed, "allocations")])


def _states(spans: pl.DataFrame, lane: Numbers) -> pl.Series:
    """The colour of each span's owner, and of those that are cached."""
    key = spans["owner"].cast(numbers()).to_physical().cast(pl.Int64).fill_null(-1)
    first = spans.select("from_ns", key=key).group_by("key").agg(pl.col("from_ns").min())
    order = first.sort("from_ns", "key")["key"].to_numpy()
    turn = np.zeros(int(order.max(initial=0)) + 2, np.int64)
    turn[order] = np.arange(len(order))  # of no known owner is the last place
    owner = turn[key.to_numpy()]
    is_cached = spans["is_cached"].to_numpy()
    owned = np.flatnonzero(~is_cached)
    follows = (lane[owned][1:] == lane[owned][:-1]) & (owner[owned][1:] != owner[owned][:-1])
    pairs = np.stack((owner[owned][:-1][follows], owner[owned][1:][follows]), axis=1)
    colour = colours_of(len(order), pairs)[owner]
    state = np.where(is_cached, palette.CACHED, palette.OWNERS.start + colour)
    return pl.Series("state", state.astype(np.uint8))


def colours_of(num_owners: int, pairs: Numbers) -> Numbers:
    """A colour for each owner, in turn as they came, such that no pair [any, 2] has the same.

    The later of a pair that has gets the next colour that none of its partners has, in a few
    rounds over all of them at once; a request whose partners have all colours keeps its own.
    """
    colour = np.arange(num_owners) % NUM_COLOURS
    both = np.unique(np.concatenate((pairs, pairs[:, ::-1])), axis=0)
    one, other = both[:, 0], both[:, 1]
    for _ in range(MOST_ROUNDS):
        clash = (colour[one] == colour[other]) & (one > other)
        if not clash.any():
            break
        near = np.zeros(num_owners, np.int64)
        np.bitwise_or.at(near, one, 1 << colour[other])
        later = np.unique(one[clash])
        turned = (colour[later, None] + np.arange(NUM_COLOURS)) % NUM_COLOURS
        is_free = (near[later, None] >> turned) & 1 == 0
        choice = np.where(is_free.any(axis=1), is_free.argmax(axis=1), 0)
        changed = turned[np.arange(len(later)), choice]
        if (changed == colour[later]).all():
            break
        colour[later] = changed
    return colour


def pool_counters(
    trace: Trace, sections: Sequence[Section], names: Sequence[LaneName]
) -> tuple[Counter, ...]:
    """How many KV blocks had an owner over time, for each rank, out of all where that is known."""
    own = next((each for each in sections if each.name == KV_BLOCKS), None)
    if own is None:
        return ()
    index, every = own.index, slice(0, len(own.index))
    lane = np.repeat(np.arange(len(index.offsets) - 1), np.diff(index.offsets))
    rank = np.array([name.rank for name in names[own.first_lane :][: lane.max() + 1]])[lane]
    starts, ends, ref = index.starts[every], index.ends(every), index.ref[every]
    is_owned = index.state[every] != palette.CACHED
    totals = dict(
        trace.steps.drop_nulls("kv_blocks_total").group_by("rank")
        .agg(pl.col("kv_blocks_total").max()).collect().iter_rows()
    )  # fmt: skip
    ranks = sorted(set(rank.tolist()))
    return tuple(
        _in_use(each, ranks, (starts[of], ends[of], ref[of].astype(np.int64)), totals.get(each))
        for each in ranks
        for of in (is_owned & (rank == each),)
        if of.any()
    )


def _in_use(
    rank: int, ranks: list[int], spans: tuple[Ints, Ints, Ints], total: int | None
) -> Counter:
    starts, ends, ref = spans
    times = np.concatenate((starts, ends))
    order = np.argsort(times, kind="stable")
    sums = np.repeat((1, -1), len(starts))[order].cumsum()
    times = times[order]
    is_last = np.append(times[1:] != times[:-1], True)
    label = " ".join(part for part in (several_ranks("", rank, ranks), IN_USE) if part)
    return Counter(
        LaneName(rank, "", label), "allocations", times[is_last],
        sums[is_last].astype(np.float64), np.concatenate((ref, ref))[order][is_last], "blocks",
        KV_BLOCKS, total,
    )  # fmt: skip
