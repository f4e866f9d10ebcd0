"""When cores stood idle while a block that could have run on them had to wait, and what it cost.

Blocks of a shape compete for a pool: single cores for AIC and for AIV, whole groups for MIX. Over
time, the pool has a number of idle members and a number of waiting blocks; the smaller of the two
is how many cores (or groups) were lost just then. Both numbers are sums of +1 and -1 over time, so
this grows with the rows and not with pairs of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.analyzers.occupancy import FAR_NS, POOL, busy
from stepscope.analyzers.once import once

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

LEVELS = ("num_busy", "num_waiting")
MEMBERS = {"AIC": "AIC core", "AIV": "AIV core", "MIX": "core group"}


def idle_while(
    trace: Trace, waits: pl.LazyFrame, spans: pl.LazyFrame, recovery_ns: int
) -> pl.LazyFrame:
    """What each pool lost to blocks that had to wait; pools that lost nothing are left out.

    `waits` has rank, shape, from_ns, to_ns; `spans` is `holds`. A member is idle when it has held
    nothing for `recovery_ns`. Gives rank, shape, members, lost_ns (added up over members), share
    (of the members' time in steps that have blocks of the shape), and the worst moment: ts_ns,
    end_ns, step, num_idle, num_waiting.
    """
    taken = once(trace, f"busy or within {recovery_ns} ns of it", lambda: busy(spans, recovery_ns))
    pools = taken.group_by(*POOL).agg(members=pl.col("unit").n_unique().cast(pl.Int64))
    changes = [_changes(taken, "num_busy"), _changes(waits, "num_waiting")]
    idle = pl.col("members") - pl.col("num_busy")
    # The worst moment is looked for among whole rows: in Polars 2.1 an aggregation that filters,
    # sorts and takes the first gave numbers from nowhere, now and then.
    lost = (
        _running(pl.concat(changes))
        .join(pools, on=POOL)
        .with_columns(num_idle=idle)
        .with_columns(lost_ns=pl.min_horizontal("num_idle", "num_waiting") * pl.col("lasts_ns"))
        .filter(pl.col("lost_ns") > 0)
        .with_columns(
            _most=pl.col("lost_ns").max().over(POOL), _total=pl.col("lost_ns").sum().over(POOL)
        )
        .filter(pl.col("lost_ns") == pl.col("_most"))
        .sort("ts_ns", "end_ns")
        .unique(POOL, keep="first", maintain_order=True)
        .select(*POOL, "members", "ts_ns", "end_ns", "num_idle", "num_waiting", lost_ns="_total")
    )
    share = pl.col("lost_ns") / (pl.col("members") * pl.col("used_ns"))
    used = once(trace, "how long each pool was used", lambda: _used(spans))
    began = once(trace, "when the blocks of each step were ready first", lambda: _began(spans))
    shares = lost.join(used, on=POOL).with_columns(share=share)
    return shares.sort("ts_ns").join_asof(began, on="ts_ns", by="rank", check_sortedness=False)


def _changes(spans: pl.LazyFrame, level: str) -> pl.LazyFrame:
    """One row where a span [from_ns, to_ns) begins, +1 in `level`, and one where it ends, -1."""
    change = [
        spans.select(
            *POOL,
            pl.col(column).alias("ts_ns"),
            *(pl.lit(sign if each == level else 0, pl.Int64).alias(each) for each in LEVELS),
        )
        for column, sign in (("from_ns", 1), ("to_ns", -1))
    ]
    return pl.concat(change)


def _running(changes: pl.LazyFrame) -> pl.LazyFrame:
    """The levels from `ts_ns` on, which last for `lasts_ns`, until `end_ns`.

    Of several changes of one moment, all but the last last for no time.
    """
    levels = [pl.col(level).cum_sum().over(POOL) for level in LEVELS]
    return (
        changes.sort("ts_ns")
        .with_columns(*levels, end_ns=pl.col("ts_ns").shift(-1).over(POOL))
        .with_columns(lasts_ns=pl.col("end_ns") - pl.col("ts_ns"))
    )


def _began(spans: pl.LazyFrame) -> pl.LazyFrame:
    """When the first block of each step was ready, in order."""
    known = spans.select("rank", "step", ts_ns="ready_ns").drop_nulls()
    return known.group_by("rank", "step").agg(pl.col("ts_ns").min()).sort("ts_ns", "step")


def _used(spans: pl.LazyFrame) -> pl.LazyFrame:
    """How long steps with blocks of a shape used the device, from first ready to last end."""
    step = ("rank", "step")
    ends, begins = pl.col("end_ns").max(), pl.col("ready_ns").min()
    return (
        spans.filter(pl.col("end_ns") < FAR_NS)
        .group_by(*step, "shape")
        .agg(ends, begins)
        .with_columns(used_ns=ends.over(step) - begins.over(step))
        .group_by(POOL)
        .agg(pl.col("used_ns").sum())
    )
