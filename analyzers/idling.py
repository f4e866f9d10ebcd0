"""When cores stood idle while a block that could have run on them had to wait, and what it cost.

Blocks of a shape compete for a pool: single cores for AIC and for AIV, whole groups for MIX. Over
time, the pool has a number of idle members and a number of waiting blocks; the smaller of the two
is how many cores (or groups) were lost just then. Both numbers are sums of +1 and -1 over time, so
this grows with the rows and not with pairs of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.analyzers.layout import configured
from stepscope.analyzers.occupancy import FAR_NS, POOL, busy
from stepscope.analyzers.once import once

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

# Where a member is taken and is free again, and where a block begins to wait and no longer does.
_ENDS = ("from_ns", "to_ns", "from_ns", "to_ns")
_TO_IDLE, _TO_WAITING = (-1, 1, 0, 0), (0, 0, 1, -1)
_LOST = ("lost_ns", "ts_ns", "end_ns", "num_idle", "num_waiting")
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
    taken = once(trace, f"busy or within {recovery_ns} ns of it", lambda: busy(trace, recovery_ns))
    members = _members(trace, taken)
    waited = waits.select(*POOL, "from_ns", "to_ns")
    lost = _lost(taken.collect(), waited.collect(), members.collect())
    share = pl.col("lost_ns") / (pl.col("members") * pl.col("used_ns"))
    used = once(trace, "how long each pool was used", lambda: _used(spans))
    began = once(trace, "when the blocks of each step were ready first", lambda: _began(spans))
    shares = lost.lazy().join(used, on=POOL).with_columns(share=share)
    return shares.sort("ts_ns").join_asof(began, on="ts_ns", by="rank", check_sortedness=False)


def _members(trace: Trace, taken: pl.LazyFrame) -> pl.LazyFrame:
    """How many cores or groups each pool has: as configured, and no fewer than were ever used."""
    places = configured(trace)
    kinds = [kind[:3] for kind, _ in places]
    declared = {
        "AIC": kinds.count("AIC"),
        "AIV": kinds.count("AIV"),
        "MIX": len({group for _, group in places}),
    }
    of_shape = pl.col("shape").cast(pl.String)
    num_declared = of_shape.replace_strict(declared, default=0, return_dtype=pl.Int64)
    num_used = pl.col("unit").n_unique().cast(pl.Int64)
    used = taken.group_by(*POOL).agg(members=num_used)
    return used.with_columns(members=pl.max_horizontal("members", num_declared))


def _lost(taken: pl.DataFrame, waits: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """What each pool lost, and its worst moment; pools that lost nothing are left out."""
    taken_of, waits_of = (each.partition_by(POOL, as_dict=True) for each in (taken, waits))
    pools = members.join(waits.select(POOL).unique(), on=POOL, how="semi")
    lost = [
        _lost_by(num_members, taken_of[rank, shape], waits_of[rank, shape])
        for rank, shape, num_members in pools.iter_rows()
    ]
    told = pl.DataFrame(lost, schema=dict.fromkeys(_LOST, pl.Int64), orient="row")
    return pools.hstack(told).filter(pl.col("lost_ns") > 0)


def _lost_by(num_members: int, taken: pl.DataFrame, waits: pl.DataFrame) -> tuple[int, ...]:
    """How much a pool lost, and when most at once: ts_ns, end_ns, num_idle, num_waiting.

    Of several changes of one moment, all but the last last for no time. NumPy's stable sort merges
    what is in order already, which is nearly all of it.
    """
    import numpy as np  # noqa: PLC0415 - only a trace with waits pays for it

    spans = (taken, taken, waits, waits)
    ts_ns = np.concatenate([each[end].to_numpy() for each, end in zip(spans, _ENDS, strict=True)])
    order = np.argsort(ts_ns, kind="stable")
    ts_ns = ts_ns[order]
    which = np.repeat(np.arange(4, dtype=np.int8), [len(each) for each in spans])[order]
    num_idle, num_waiting = (
        np.cumsum(np.array(change, np.int32)[which], dtype=np.int32)
        for change in (_TO_IDLE, _TO_WAITING)
    )
    num_idle += num_members
    lost_ns = np.minimum(num_idle, num_waiting)[:-1] * np.diff(ts_ns)
    worst = int(lost_ns.argmax())
    at_worst = (ts_ns[worst], ts_ns[worst + 1], num_idle[worst], num_waiting[worst])
    return (int(lost_ns.sum()), *(int(number) for number in at_worst))


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
