"""Who owned which block or slot, from when to when: the fold of `allocations`.

An owner takes a block or slot by `claim`, by `share` (of one that another owner has or had, as a
prefix cache does) or by `move`, which leaves the one that it had before; it lets go by `release`.
Of several changes of one moment what counts is what they come to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.analyzers.occupancy import FAR_NS

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

THING = ("rank", "resource", "id")
OWNER = (*THING, "owner")
CALLED = {"kv-block": "KV block", "slot": "slot"}


def ownerships(trace: Trace) -> pl.LazyFrame:
    """One row for each time that an owner had a block or slot.

    Columns: rank, resource, id, owner, step (in which it was taken), from_ns, to_ns (far where it
    was never let go), is_shared (taken by `share` alone). Letting go of what one does not have
    changes nothing.
    """
    # Rows of an owner and a thing stand together, so one number tells them from the next: windows
    # over it take a fifth of the time that windows over four columns take.
    is_next = pl.any_horizontal(pl.col(OWNER) != pl.col(OWNER).shift(1)).fill_null(value=True)
    balance = pl.col("change").cum_sum().over("_of")
    had = balance - pl.min_horizontal(balance.cum_min().over("_of"), 0)
    is_held = pl.col("had") > 0
    changed = (is_held != is_held.shift(1)).over("_of").fill_null(is_held)
    return (
        _changes(trace)
        .sort(*OWNER, "ts_ns")
        .with_columns(_of=is_next.cum_sum())
        .with_columns(had=had)
        .filter(changed)
        .with_columns(to_ns=pl.col("ts_ns").shift(-1).over("_of").fill_null(FAR_NS))
        .filter(is_held)
        .select(*OWNER, "step", "to_ns", "is_shared", from_ns="ts_ns")
    )


def _changes(trace: Trace) -> pl.LazyFrame:
    """What an owner took (positive) and let go of in each moment."""
    known = [pl.col(name).is_not_null() for name in ("ts_ns", "resource", "id", "owner")]
    told = trace.allocations.filter(*known).with_columns(pl.col("ts_ns").clip(-FAR_NS, FAR_NS))
    taken = told.filter(pl.col("op") != "release")
    let_go = pl.concat([told.filter(pl.col("op") == "release").select(_COLUMNS), _left(taken)])
    return (
        pl.concat(
            [
                taken.select(_COLUMNS, change=pl.lit(1), is_shared=pl.col("op") == "share"),
                let_go.with_columns(change=pl.lit(-1), is_shared=pl.lit(value=True)),
            ]
        )
        .group_by(*OWNER, "ts_ns")
        .agg(pl.col("step").min(), pl.col("change").sum(), pl.col("is_shared").all())
    )


_COLUMNS = (*OWNER, "step", "ts_ns")


def _left(taken: pl.LazyFrame) -> pl.LazyFrame:
    """What owners left by a `move`: the slot that they had taken before it."""
    before = ("rank", "resource", "owner")
    return (
        taken.sort(*before, "ts_ns", "op", "id")
        .with_columns(id_before=pl.col("id").shift(1).over(before))
        .filter(pl.col("op") == "move", pl.col("id_before").is_not_null())
        .select("rank", "resource", pl.col("id_before").alias("id"), "owner", "step", "ts_ns")
    )
