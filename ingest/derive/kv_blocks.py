"""Who owned each KV block over time: `allocations` as spans of which no two of a block overlap.

An owner holds a block from its `claim`, `share` or `move` until it releases it, lets go of it or
leaves it by a `move`, or until the next claim of the block, as in `holding_intervals.holds`. Of
several holders of a shared block, the first that still holds it counts as its owner, as in the
debugger. A block that no one holds and whose contents the prefix cache can still find is *cached*.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

KV_BLOCK = "kv-block"
BLOCK = ("rank", "id")
OPS = ("claim", "move", "share", "release", "let-go", "cache", "evict")
"""What counts here: what takes a block, what shares it, what ends that, and what the prefix cache
can find from then on, or no longer.
"""
MOVE, SHARE, RELEASE, LET_GO, CACHE = (
    OPS.index(op) for op in ("move", "share", "release", "let-go", "cache")
)
Ints = npt.NDArray[np.int64]


def block_spans(trace: Trace) -> pl.DataFrame:
    """One row for each time that a block had an owner, or was cached and had none.

    Columns: rank, id, from_ns, to_ns (null where it was still so at the end), owner (null where
    cached), is_cached, and `ref`, the row of `allocations` that began it: the claim or share, or
    the `cache` of a cached block. Sorted by rank, id and time; what came to nothing in one moment
    is left out. No loop goes over rows: 10 million take some seconds.
    """
    rows = _changes(trace)
    owned = _owned(_holds(rows))
    free = _cached(rows, owned)
    every = pl.concat([owned, free]).sort("thing", "from_ns") if len(free) else owned
    begins = np.flatnonzero(np.diff(rows["thing"].to_numpy(), prepend=-1))
    blocks = rows.select(BLOCK)[begins][every["thing"].to_numpy()]
    to_ns = pl.when(pl.col("to_ns") < FAR_NS).then("to_ns").alias("to_ns")
    return every.select(*blocks, "from_ns", to_ns, "owner", "is_cached", "ref")


def block_holds(trace: Trace, rank: int, block: int) -> pl.DataFrame:
    """Every time that anyone held one block: owner, ref, from_ns, to_ns (null: until the end).

    Sorted by time; several at once where it was shared.
    """
    own = _holds(_changes(trace, (rank, block)))
    to_ns = pl.when(pl.col("to_ns") < FAR_NS).then("to_ns").alias("to_ns")
    return own.select("owner", "ref", "from_ns", to_ns)


def _changes(trace: Trace, block: tuple[int, int] | None = None) -> pl.DataFrame:
    """The rows about KV blocks, or one of them, by block and in their order.

    `thing` numbers the blocks from 0, `op` is the place in OPS. A `move` is a release of the block
    that it came from as well.
    """
    is_about = (pl.col("resource") == KV_BLOCK) & pl.col("op").is_in(OPS)
    is_of_it = pl.lit(value=True) if block is None else _is_of(block)
    is_move = (pl.col("op") == "move") & pl.col("source").is_not_null()
    found = (
        trace.allocations.with_row_index("ref")
        .filter(is_about, is_of_it | is_move)
        .drop_nulls([*BLOCK, "ts_ns"])
        .select(
            *BLOCK, "seq", "ref", "owner", "source", from_ns=pl.col("ts_ns").clip(-FAR_NS, FAR_NS),
            op=pl.col("op").cast(pl.Enum(OPS)).to_physical().cast(pl.Int8),
        )
        .collect()
    )  # fmt: skip
    moved = found.filter(pl.col("op") == MOVE, pl.col("source").is_not_null())
    if len(moved):
        left = moved.with_columns(id="source", op=pl.lit(RELEASE, pl.Int8))
        found = pl.concat([left, found]).filter(is_of_it)
    ordered = found[_order(found)].drop("seq", "source")
    rank, number = (ordered[name].to_numpy() for name in BLOCK)
    is_next = np.ones(len(ordered), np.int64)
    is_next[1:] = (rank[1:] != rank[:-1]) | (number[1:] != number[:-1])
    return ordered.with_columns(thing=pl.Series(np.cumsum(is_next) - 1, dtype=pl.Int64))


def _is_of(block: tuple[int, int]) -> pl.Expr:
    return (pl.col("rank") == block[0]) & (pl.col("id") == block[1])


def _order(found: pl.DataFrame) -> Ints:
    """The order of rows by rank and block, then as they were recorded: by seq, time and row."""
    columns = found.select("ref", "from_ns", pl.col("seq").fill_null(-1))
    ref, time, seq = (column.to_numpy() for column in columns)
    rises = (np.diff(seq) > 0) | ((np.diff(seq) == 0) & (np.diff(time) >= 0))
    recorded = np.arange(len(found)) if rises.all() else np.lexsort((ref, time, seq))
    rank, number = (found[name].to_numpy()[recorded] for name in BLOCK)
    if len(number) and number.min() >= 0 and number.max() < 1 << 16:
        number = number.astype(np.uint16)  # which NumPy counts instead of comparing them
    by_block = np.argsort(number, kind="stable")
    if len(rank) and rank.min() != rank.max():
        by_block = by_block[np.argsort(rank[by_block], kind="stable")]
    return recorded[by_block]


def _holds(rows: pl.DataFrame) -> pl.DataFrame:
    """Claims, shares and moves in their order, with `to_ns`: FAR_NS where nothing ended them."""
    hands = rows.filter(pl.col("op") <= LET_GO)
    op, thing = hands["op"].to_numpy(), hands["thing"].to_numpy()
    owner = hands["owner"].cast(pl.Categorical).to_physical().cast(pl.Int64).fill_null(-1) + 1
    until = np.minimum(_next_of(thing, op <= MOVE), _next_of_owner(thing, owner.to_numpy(), op))
    times = np.append(hands["from_ns"].to_numpy(), FAR_NS)
    held = hands.with_columns(to_ns=pl.Series(times[until], dtype=pl.Int64))
    return held.filter(pl.col("op") <= SHARE).drop(*BLOCK)


def _next_of_owner(thing: Ints, owner: Ints, op: npt.NDArray[np.int8]) -> Ints:
    """Of each hold the place of the next row that ends what its owner has; else how many there are.

    Mostly that is the next row of the block. What a claim ends before is of no interest.
    """
    is_end, places = op >= RELEASE, np.arange(1, len(thing) + 1)
    has_next = np.zeros(len(thing), np.bool_)
    has_next[:-1] = thing[1:] == thing[:-1]
    ends_next, taken_next = np.zeros((2, len(thing)), np.bool_)
    ends_next[:-1] = has_next[:-1] & is_end[1:] & (owner[1:] == owner[:-1])
    taken_next[:-1] = has_next[:-1] & (op[1:] <= MOVE)
    found = np.where(ends_next, places, len(thing))
    others = np.unique(thing[has_next & ~ends_next & ~taken_next & ~is_end])
    if len(others):
        own = np.flatnonzero(np.isin(thing, others))
        whose = thing[own] * (int(owner.max()) + 1) + owner[own]
        order = np.argsort(whose, kind="stable")
        following = _next_of(whose[order], is_end[own][order])
        found[own[order]] = np.append(own[order], len(thing))[following]
    return found


def _next_of(key: Ints, is_it: npt.NDArray[np.bool_]) -> Ints:
    """Of each row the place of the next such row of its key; the number of rows if none follows.

    Rows of one key stand together.
    """
    places = np.append(np.where(is_it, np.arange(len(key)), len(key)), len(key))
    nearest = np.minimum.accumulate(places[::-1])[::-1][1:]
    is_own = key[nearest.clip(max=max(len(key) - 1, 0))] == key
    return np.where(is_own, nearest, len(key))


def _owned(holds: pl.DataFrame) -> pl.DataFrame:
    """From when until when each holder was the first of those that still held the block."""
    begins = pl.max_horizontal("from_ns", _latest_end_before(holds))
    return (
        holds.with_columns(from_ns=begins, is_cached=pl.lit(value=False))
        .filter(pl.col("from_ns") < pl.col("to_ns"))
        .select("thing", "from_ns", "to_ns", "owner", "is_cached", "ref")
    )


def _latest_end_before(holds: pl.DataFrame) -> pl.Series:
    """When all earlier holds of the block had ended; -FAR_NS for the first.

    Where nothing is shared, a claim ends what was before, and nothing need be compared.
    """
    thing, begins = holds["thing"].to_numpy(), holds["from_ns"].to_numpy()
    rises = (np.diff(begins) >= 0) | (np.diff(thing) > 0)
    if rises.all() and not (holds["op"] == SHARE).any():
        return pl.Series("latest", begins)
    order = holds["to_ns"].rank("ordinal").cast(pl.Int64).to_numpy() - 1
    times = np.empty(len(order), np.int64)
    times[order] = holds["to_ns"].to_numpy()
    # Blocks are numbered in order, so what is latest never comes from an earlier one.
    latest = np.maximum.accumulate(thing * max(len(order), 1) + order)
    before = times[latest[:-1] % max(len(order), 1)]
    is_own = thing[1:] == thing[:-1]
    found = np.full(len(order), -FAR_NS, np.int64)
    found[1:][is_own] = before[is_own]
    return pl.Series("latest", found)


def _cached(rows: pl.DataFrame, owned: pl.DataFrame) -> pl.DataFrame:
    """When the prefix cache could find the contents of a block that no one held."""
    findable = rows.filter(pl.col("op") >= CACHE)
    if findable.is_empty():
        return owned.clear()
    next_ns = pl.col("from_ns").shift(-1).over("thing").fill_null(FAR_NS)
    could = findable.with_columns(to_ns=next_ns).filter(pl.col("op") == CACHE)
    points = pl.concat(
        [
            *_ends(owned.with_columns(ref=pl.lit(None, pl.UInt32)), "num_owners"),
            *_ends(could, "num_cached"),
        ],
        how="diagonal",
    )
    parts = (
        points.sort("thing", "from_ns", maintain_order=True)
        .with_columns(
            pl.col("num_owners", "num_cached").fill_null(0).cum_sum(),
            pl.col("ref").forward_fill().over("thing"),
            to_ns=pl.col("from_ns").shift(-1).over("thing"),
        )
        .filter(
            pl.col("num_owners") == 0, pl.col("num_cached") > 0,
            pl.col("from_ns") < pl.col("to_ns"),
        )
    )  # fmt: skip
    follows = (pl.col("to_ns").shift(1) == pl.col("from_ns")) & (
        pl.struct("thing", "ref") == pl.struct("thing", "ref").shift(1)
    )
    return (
        parts.group_by((~follows.fill_null(value=False)).cum_sum().alias("part"), "thing", "ref")
        .agg(pl.col("from_ns").min(), pl.col("to_ns").max())
        .with_columns(owner=pl.lit(None, pl.String), is_cached=pl.lit(value=True))
        .select(owned.columns)
    )


def _ends(spans: pl.DataFrame, counted: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The two ends of spans: one more from its begin on, one less from its end on."""
    one = pl.lit(1, pl.Int64)
    begins = spans.select("thing", "from_ns", "ref", one.alias(counted))
    ends = spans.select("thing", from_ns="to_ns", ref=pl.lit(None, pl.UInt32), **{counted: -one})
    return begins, ends
