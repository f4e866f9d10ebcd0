"""Who owned which block or slot, from when to when: `allocations` told as intervals.

An owner takes a block or slot by `claim`, by `share` (of one that another owner has or had, as a
prefix cache does) or by `move`, which leaves the one that it had before; it gives it back by
`release`, or is done with it at `let-go`, before work that was launched is and `release` makes it
free. Of several changes of one moment what counts is what they come to. That the prefix cache finds
a block's contents (`cache`, `evict`), or that they were copied (`copy`), makes nobody its owner.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.views.known import any_row
from stepscope.analyzers.views.once import once
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

THING = ("rank", "resource", "id")
OWNER = (*THING, "owner")
CALLED = {"kv-block": "KV block", "slot": "slot", "kv-token": "token of KV"}
POOLED = {"kv-block": "KV blocks", "kv-token": "tokens of KV"}
"""What KV pools are counted in."""
TAKES = ("claim", "share", "move")


def ownerships(trace: Trace) -> pl.LazyFrame:
    """One row for each time that an owner had a block or slot.

    Columns: rank, resource, id, owner, step (in which it was taken), from_ns, to_ns (far where it
    was never let go), is_shared (taken by `share` alone). Letting go of what one does not have
    changes nothing.
    """
    return once(trace, "ownerships", lambda: _ownerships(trace))


def _ownerships(trace: Trace) -> pl.LazyFrame:
    changes = _of_moments(_changes(trace).collect())
    is_held = pl.col("had") > 0
    changed = pl.when(pl.col("is_first")).then(is_held).otherwise(is_held != is_held.shift(1))
    taken = changes.lazy().with_columns(had=_had(changes)).filter(changed)
    is_last = (pl.col("of") != pl.col("of").shift(-1)).fill_null(value=True)
    to_ns = pl.when(is_last).then(FAR_NS).otherwise(pl.col("ts_ns").shift(-1))
    held = taken.with_columns(to_ns=to_ns).filter(is_held)
    return held.select(*OWNER, "step", "to_ns", "is_shared", from_ns="ts_ns")


def _had(changes: pl.DataFrame) -> pl.Expr:
    """How often an owner has taken a thing and not let it go, after each change.

    All changes of an owner and a thing stand together, so one sum over all rows will do, less what
    it was before them: windows over millions of owners would take most of the time.
    """
    total = pl.col("change").cum_sum()
    before = pl.when(pl.col("is_first")).then(total - pl.col("change")).forward_fill()
    balance = total - before
    if changes.select((balance < 0).any()).item():
        return balance - pl.min_horizontal(balance.cum_min().over("of"), 0)
    return balance


def _of_moments(changes: pl.DataFrame) -> pl.DataFrame:
    """Sort changes by what they are of and by time, and add up those of one moment."""
    key = ("of", "ts_ns")
    ordered = changes.sort(*key)
    is_again = pl.all_horizontal(pl.col(key) == pl.col(key).shift(1)).fill_null(value=False)
    again = ordered.select(is_again).to_series()
    if again.any():
        shared = again | again.shift(-1, fill_value=False)
        summed = (
            ordered.filter(shared)
            .group_by(*key)
            .agg(
                pl.col(OWNER).first(),
                pl.col("step").min(),
                pl.col("change").sum(),
                pl.col("is_shared").all(),
            )
        )
        ordered = pl.concat([ordered.filter(~shared), summed.select(ordered.columns)]).sort(*key)
    is_first = (pl.col("of") != pl.col("of").shift(1)).fill_null(value=True)
    return ordered.with_columns(is_first=is_first)


def _changes(trace: Trace) -> pl.LazyFrame:
    """What an owner took (positive) and let go of; `of` tells owner and thing from all others."""
    known = [pl.col(name).is_not_null() for name in ("ts_ns", "resource", "id", "owner")]
    told = trace.allocations.filter(*known).with_columns(pl.col("ts_ns").clip(-FAR_NS, FAR_NS))
    taken = told.filter(pl.col("op").is_in(TAKES))
    let_go = pl.concat([_given_back(told).select(_COLUMNS), _left(taken)])
    changes = pl.concat(
        [
            taken.select(_COLUMNS, change=pl.lit(1), is_shared=pl.col("op") == "share"),
            let_go.with_columns(change=pl.lit(-1), is_shared=pl.lit(value=True)),
        ]
    )
    return changes.with_columns(of=pl.struct(OWNER).hash())


_COLUMNS = (*OWNER, "step", "ts_ns")


def _given_back(told: pl.LazyFrame) -> pl.LazyFrame:
    """When owners were done with things: a release behind a `let-go` is not theirs any more."""
    op = pl.col("op")
    if not any_row(told.filter(op == "let-go")):
        return told.filter(op == "release")
    is_done = (op.shift(1).over(OWNER) == "let-go").fill_null(value=False)
    hands = told.filter(op.is_in([*TAKES, "let-go", "release"])).sort(*OWNER, "ts_ns", "op")
    return hands.filter((op == "let-go") | ((op == "release") & ~is_done))


def _left(taken: pl.LazyFrame) -> pl.LazyFrame:
    """What owners left by a `move`: the slot that they had taken before it."""
    before = ("rank", "resource", "owner")
    return (
        taken.sort(*before, "ts_ns", "op", "id")
        .with_columns(id_before=pl.col("id").shift(1).over(before))
        .filter(pl.col("op") == "move", pl.col("id_before").is_not_null())
        .select("rank", "resource", pl.col("id_before").alias("id"), "owner", "step", "ts_ns")
    )
