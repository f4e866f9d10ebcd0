"""Intervals of a run as tables: who held what, a request's turns in batches, how much was held.

They are made of recorded rows when they are asked for, and no file has them. A trace without the
rows has none of the intervals either, which says nothing about what was held.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from stepscope.ingest.columns import Table, i32, i64, text

OF_THING = ("rank", "resource", "id")
TAKING = ("claim", "move")
ENDING = ("release", "let-go")
HANDS = (*TAKING, "share", *ENDING)

HOLDS = Table(
    "holds", "a slot or KV block that a request held for a while",
    (
        i32("rank", "the process in which it was"), i64("step", "step in which it was taken"),
        i64("ts_ns", "when it was taken"), i64("to_ns", "when it was given up, if it ever was"),
        text("resource", "what was held"), i64("id", "number of the block or slot"),
        text("owner", "request that held it"), text("op", "how it was taken: claim, share or move"),
        i64("dur_ns", "how long it was held; null if it never was given up"),
        i64("seq", "place of its claim in the order of changes"),
        i64("to_seq", "place of what ended it; null where none was counted"),
    ),
    (),
)  # fmt: skip
TURNS = Table(
    "turns", "steps in a row in whose batches a request was, in one phase",
    (
        i32("rank", "the process in which it was"), i64("step", "the first of the steps"),
        i64("ts_ns", "when its batch was formed"), i64("last_step", "the last of the steps"),
        i64("to_ns", "when the batch of the last was formed"), text("request", "request id"),
        text("phase", "prefill or decode"), i64("num_steps", "how many steps"),
        i64("num_tokens", "tokens that were scheduled for it in all of them"),
    ),
    (),
)  # fmt: skip
OCCUPANCY = Table(
    "occupancy", "how much of a resource was held, from one change of that to the next",
    (
        i32("rank", "the process in which it was"), i64("step", "step in which it changed"),
        i64("ts_ns", "when it changed"), i64("to_ns", "until when it was so; null at the end"),
        text("resource", "what was held"), i64("num_held", "holds: two of a block with two users"),
    ),
    (),
)  # fmt: skip
INTERVALS: tuple[Table, ...] = (HOLDS, TURNS, OCCUPANCY)
MADE_OF = {"holds": "allocations", "occupancy": "allocations", "turns": "batch_rows"}
"""The table that each is made of, without whose rows nothing is known of it."""


def intervals_of(tables: Mapping[str, pl.LazyFrame]) -> dict[str, pl.LazyFrame]:
    """Make the tables of INTERVALS from `allocations` and `batch_rows`, computed when collected."""
    held = holds(tables["allocations"])
    return {
        "holds": held,
        "turns": turns(tables["batch_rows"], tables["steps"]),
        "occupancy": occupancy(held),
    }


def holds(allocations: pl.LazyFrame) -> pl.LazyFrame:
    """Claims, shares and moves with when each ended: by its owner's release, or the next claim.

    They keep `ref` where `allocations` numbers its rows by one.
    """
    op = pl.col("op")
    refs = [name for name in ("ref",) if name in allocations.collect_schema()]
    rows = allocations.filter(op.is_in(HANDS)).sort("rank", "seq", "ts_ns", maintain_order=True)
    is_taking, is_ending = op.is_in(TAKING), op.is_in(ENDING)
    place = pl.col("place")
    given = pl.when(is_ending).then(place).shift(-1).backward_fill().over(*OF_THING, "owner")
    taken = pl.when(is_taking).then(place).shift(-1).backward_fill().over(*OF_THING)
    numbered = rows.with_row_index("place")
    ends = numbered.select("place", to_ns="ts_ns", to_seq="seq")
    told = numbered.with_columns(until=pl.min_horizontal(given, taken)).filter(~is_ending)
    ended = told.join(ends, left_on="until", right_on="place", how="left", maintain_order="left")
    return ended.with_columns(dur_ns=pl.col("to_ns") - pl.col("ts_ns")).select(*HOLDS.names, *refs)


def turns(batch_rows: pl.LazyFrame, steps: pl.LazyFrame) -> pl.LazyFrame:
    """Rows of batches joined where the same request was in the next step too, in the same phase."""
    place = pl.int_range(pl.len(), dtype=pl.Int64).over("rank")
    every = (
        pl.concat([each.select("rank", "step") for each in (steps, batch_rows)])
        .drop_nulls()
        .unique()
        .sort("rank", "step")
        .with_columns(place=place)
    )
    rows = (
        batch_rows.drop_nulls(["step", "request"])
        .join(every, on=["rank", "step"])
        .sort("rank", "request", "place", maintain_order=True)
    )
    whose = ["rank", "request", "phase"]
    is_new = (pl.col("place") - pl.col("place").shift(1)).ne(1).fill_null(value=True).over(whose)
    grouped = rows.with_columns(turn=is_new.cum_sum().over(whose))
    joined = grouped.group_by(*whose, "turn", maintain_order=True).agg(
        pl.col("step").first(), pl.col("ts_ns").first(), last_step=pl.col("step").last(),
        to_ns=pl.col("ts_ns").last(), num_steps=pl.len().cast(pl.Int64),
        num_tokens=pl.col("num_tokens").sum(),
    )  # fmt: skip
    return joined.select(TURNS.names).sort("rank", "ts_ns", "request")


def occupancy(held: pl.LazyFrame) -> pl.LazyFrame:
    """How many holds there were after each moment at which one began or ended."""
    began = held.select("rank", "resource", "step", "ts_ns", by=pl.lit(1))
    ended = held.drop_nulls("to_ns").select(
        "rank", "resource", step=pl.lit(None, pl.Int64), ts_ns="to_ns", by=pl.lit(-1)
    )
    thing = ["rank", "resource"]
    moments = (
        pl.concat([began, ended])
        .group_by(*thing, "ts_ns")
        .agg(pl.col("step").drop_nulls().first(), pl.col("by").sum())
        .sort(*thing, "ts_ns")
    )
    return moments.with_columns(
        num_held=pl.col("by").cum_sum().over(thing).cast(pl.Int64),
        to_ns=pl.col("ts_ns").shift(-1).over(thing),
    ).select(OCCUPANCY.names)
