"""When cores stood idle while a block that could have run on them had to wait, and what it cost.

Blocks of a shape compete for a pool: single cores for AIC and for AIV, whole groups for MIX. Over
time, the pool has a number of idle members and a number of waiting blocks; the smaller of the two
is how many cores (or groups) were lost just then. Both numbers are sums of +1 and -1 over time, so
this grows with the rows and not with pairs of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from stepscope.analyzers.findings.finding import Evidence
from stepscope.analyzers.rules.cor.core_layout import configured
from stepscope.analyzers.rules.cor.occupancy import POOL, busy
from stepscope.analyzers.views.once import once
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

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


def evidence_of(row: Mapping[str, Any], were: str) -> Evidence:
    """What a pool lost, as evidence; `were` says what its blocks were: pending, or ready."""
    return {
        "idle_share": round(row["share"], 4),
        "lost_ns": row["lost_ns"],
        f"{MEMBERS[row['shape']]}s": row["members"],
        "idle at worst": row["num_idle"],
        f"{were} at worst": row["num_waiting"],
        "worst_ns": row["end_ns"] - row["ts_ns"],
    }


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

    Of several changes of one moment, all but the last last for no time.
    """
    idle, waiting = (pl.col(each).cast(pl.Int32).cum_sum() for each in ("to_idle", "to_waiting"))
    lost = pl.min_horizontal("num_idle", "num_waiting").cast(pl.Int64)
    is_worst = pl.col("lost_ns") == pl.col("lost_ns").max()
    return (
        pl.concat([*_changes(taken, -1, 0), *_changes(waits, 0, 1)])
        .sort("ts_ns")
        .select(
            "ts_ns", end_ns=pl.col("ts_ns").shift(-1), num_idle=num_members + idle,
            num_waiting=waiting,
        )
        .with_columns(lost_ns=lost * (pl.col("end_ns") - pl.col("ts_ns")))
        .select(pl.col("lost_ns").sum(), pl.col(_LOST[1:]).filter(is_worst).first())
        .collect()
        .row(0)
    )  # fmt: skip


def _changes(spans: pl.DataFrame, to_idle: int, to_waiting: int) -> list[pl.LazyFrame]:
    """What a span [from_ns, to_ns) changes where it begins, and takes back where it ends."""
    change = {"to_idle": to_idle, "to_waiting": to_waiting}
    return [
        spans.lazy().select(
            pl.col(column).alias("ts_ns"),
            *(pl.lit(sign * by, pl.Int8).alias(name) for name, by in change.items()),
        )
        for column, sign in (("from_ns", 1), ("to_ns", -1))
    ]


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
