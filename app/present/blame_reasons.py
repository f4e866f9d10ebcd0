"""When a request was in no batch, and what was recorded about it as each wait began.

A run that names no request waits for its GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from stepscope.analyzers.latency.causes import CAUSES, PARKED, QUEUE
from stepscope.app.present.facts import decision
from stepscope.ingest.trace import Trace

OUTSIDE = ("front-end", "delivery", QUEUE, PARKED, "preempted", "gpu-wait", "idle", "unknown")


def waits_of(intervals: pl.DataFrame) -> pl.DataFrame:
    """Those of a request's intervals, as `Blame.intervals` has them, in which it waits."""
    outside = [cause.name for cause in CAUSES if cause.group in OUTSIDE]
    return intervals.filter(pl.col("cause").is_in(outside))


def reasons(trace: Trace, waits: pl.DataFrame) -> list[str]:
    """The decision behind each of a request's waits, in words; empty where there is none.

    Of a wait behind the head of the queue it is that about the head as well.
    """
    if waits.is_empty():
        return []
    rank, request = waits.row(0)[:2]
    decisions = _Decisions(trace, rank, request)
    return [
        "" if cause in UNTOLD else decisions.because(from_ns, is_passed_on=cause != HEAD)
        for from_ns, cause in waits.select("from_ns", "cause").iter_rows()
    ]


class _Decisions:
    """What was decided about a request of a rank, and about the heads that others stood behind."""

    def __init__(self, trace: Trace, rank: int, request: str | None) -> None:
        about = (pl.col("subject_kind") == "request") & (pl.col("rank") == rank)
        decisions = trace.decisions.filter(about, pl.col("ts_ns").is_not_null())
        queued = (pl.col("resource") == "queue") & pl.col("holder").is_not_null()
        heads = decisions.filter(queued).select("holder").unique()
        is_own = pl.col("subject") == pl.lit(request)
        of_heads = decisions.join(heads, left_on="subject", right_on="holder", how="semi")
        self._queued, self._own, about_heads = (
            each.sort("ts_ns", maintain_order=True)
            for each in pl.collect_all(
                [decisions.filter(queued), decisions.filter(is_own), of_heads]
            )
        )
        self._by_head = about_heads.partition_by("subject", as_dict=True)

    def because(self, ns: int, *, is_passed_on: bool) -> str:
        """What held of it at a time, and where it stood behind a head, what held of that."""
        own = _last(self._own, ns)
        if not is_passed_on or (own is not None and own["resource"] != "queue"):
            return "" if own is None else decision(own)
        # Who is further behind than the engine tells stands behind the head that was named last.
        named = own if own and own["holder"] else _last(self._queued, ns)
        head = None if named is None else named["holder"]
        its = _last(self._by_head[(head,)], ns) if (head,) in self._by_head else None
        said = [decision(own)] if own else []
        return "; ".join([*said, f"{head} was {decision(its)}"] if its else said)


def _last(decisions: pl.DataFrame, ns: int) -> Mapping[str, Any] | None:
    """The last decision up to a time."""
    place = decisions["ts_ns"].search_sorted(ns, "right")
    return decisions.row(int(place) - 1, named=True) if place else None


HEAD = "head"
UNTOLD = {"front-end", "delivery", "gpu-wait", "step", "idle", "unknown"}
