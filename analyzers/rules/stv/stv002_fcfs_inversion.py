"""fcfs-inversion: an older request was preempted, or passed over, for a younger one.

## What it finds
Under first come, first served:

- a request was preempted on behalf of a younger one (`by_request`);
- a younger request was admitted before an older one that was waiting;
- a request that had been preempted was considered and left in the queue, in a step in which a
  younger one was admitted or resumed.

Who is passed over while it is not ready, is passed over by nobody: it was deferred because its
grammar is being compiled, say, or its output is still under way; nor is who lacks an adapter (LoRA)
that the younger one does not need.

Where the engine is set to let those who fit pass one who lacks KV blocks, a bounded number of times
(`scheduler.max_passes`), and it was passed no more often, that is worth knowing and no warning.

Older means: of a lower priority number, or of the same and arrived earlier. Where an engine sorts
its queue anew by what it likes and records how it stood (`queue_order`), nobody is passed over by
those who stood before it then. An engine that holds
everybody behind an old request which lacks blocks inverts nothing. All inversions that a request
suffered are one finding.

## Why it hurts
The old request pays for the young one's luck, and a preempted one pays twice: what it had computed
is thrown away. With steady arrivals there is always a younger one, and the old one starves.

## Example
    r0 gave way 57 times to younger requests: preempted 52 times, passed over 5 times,
    first preempted for r15

## How to fix
Sort by age where victims and admissions are chosen: preempt the youngest first and never anyone
older than the request that needs room; when the oldest waiting request does not fit, hold those
behind it.

## References
mistral.rs issue 2033, "priority sorting causes First-Come-Last-Served behavior"; vLLM pull request
33499, which lets others pass a request that lacks KV blocks, first without a bound and then eight
times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.declared import max_passes
from stepscope.analyzers.views.known import any_row, knows
from stepscope.analyzers.views.left_out import is_passed_by, left_out
from stepscope.analyzers.views.requests import (
    ENDS,
    LEAVES,
    REQUEST,
    events,
    has_histories,
    queue_places,
    requests,
    waits,
)
from stepscope.ingest.trace import Trace

FIX = (
    "choose victims youngest first, never older than the request that needs room, "
    "and hold those behind the oldest request when it does not fit"
)
LEFT_OUT = ("passed-over", "deferred", "put-back")


@dataclass(frozen=True, slots=True)
class FcfsInversion:
    """An older request gave way to a younger one at least `at_least` times."""

    code: ClassVar[str] = "STV002"
    name: ClassVar[str] = "fcfs-inversion"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("lifecycle.request",)

    at_least: int = 1
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether it is known when requests arrived, and what became of any."""
        return has_histories(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per older request, with how often it gave way, those that did most first."""
        known = requests(trace)
        ages = known.select(*REQUEST, "age")
        preempted = _preempted_for_younger(trace, ages)
        # To let in whom somebody was preempted for is not to pass over that one once more.
        left_out = _left_out_for_younger(trace, known).join(
            preempted, on=[*REQUEST, "step", "younger"], how="anti"
        )
        passed = pl.concat([_admitted_after_younger(trace, known), left_out])
        inversions = pl.concat([preempted, _against_the_order(passed, trace)])
        is_preempted = pl.col("how") == "preempted"
        earliest = ("ts_ns", "step", "how", "younger")
        gave_way = (
            inversions.group_by(REQUEST)
            .agg(
                pl.col(earliest).sort_by(earliest).first(),
                count=pl.len(),
                end_ns=pl.col("ts_ns").max(),
                num_preempted=is_preempted.sum(),
                num_younger=pl.col("younger").n_unique(),
            )
            .filter(pl.col("count") >= self.at_least)
            .with_columns(
                num_preempted=pl.when(pl.lit(_names_causers(trace))).then("num_preempted")
            )
            .sort(-pl.col("count").cast(pl.Int64), "ts_ns", *REQUEST)
        )
        found = each(self, gave_way.collect(), self._finding, FIX, self.limit)
        return [_as_declared(one, trace) for one in found]

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        count, num_preempted = row["count"], row["num_preempted"]
        num_passed = count - (num_preempted or 0)
        preempted = "" if num_preempted is None else f"preempted {times(num_preempted, 'time')}, "
        message = (
            f"{row['request']} gave way {times(count, 'time')} to younger requests: {preempted}"
            f"passed over {times(num_passed, 'time')}, first {row['how']} for {row['younger']}"
        )
        evidence: Evidence = {
            "times preempted for a younger": num_preempted,
            "times passed over": num_passed,
            "younger requests": row["num_younger"],
            "first": f"{row['how']} for {row['younger']}",
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=count)


def _as_declared(found: Finding, trace: Trace) -> Finding:
    """To be passed no more often than the engine is set to let others pass is no warning."""
    bound = max_passes(trace)
    if not bound or found.evidence.get("times preempted for a younger", 1):
        return found
    is_within = _num_let_in_before(found, trace) <= bound
    return replace(found, severity=Severity.INFO) if is_within else found


def _num_let_in_before(found: Finding, trace: Trace) -> int:
    """How often anyone younger was let in between the arrival of a request and its own turn."""
    of_rank = pl.col("rank") == found.rank
    ages = requests(trace).filter(of_rank).select("request", "age", "arrive_ns", "ended_ns")
    let_in = events(trace).filter(of_rank, pl.col("event").is_in(LEAVES)).join(ages, on="request")
    rows = let_in.select("request", "age", "ts_ns").collect()
    own = ages.filter(pl.col("request") == found.request).collect().row(0, named=True)
    turns = rows.filter(pl.col("request") == found.request)["ts_ns"]
    until = min([own["ended_ns"], *turns])
    is_younger = (pl.col("age") > own["age"]) & pl.col("ts_ns").is_between(own["arrive_ns"], until)
    return rows.filter(is_younger & (pl.col("ts_ns") < until)).height


def _names_causers(trace: Trace) -> bool:
    """Tell whether preemptions name the request that they were for; True without any."""
    preempted = trace.lifecycle.filter(pl.col("event") == "preempt")
    return knows(trace, "lifecycle.by_request") or not any_row(preempted)


def _inversions(frame: pl.LazyFrame, how: str) -> pl.LazyFrame:
    return frame.select(*REQUEST, "step", "ts_ns", "younger", pl.lit(how).alias("how"))


def _preempted_for_younger(trace: Trace, ages: pl.LazyFrame) -> pl.LazyFrame:
    by = ages.rename({"request": "younger", "age": "younger_age"})
    # Left joins, because Polars may reorder a chain of inner ones and first join `ages` with `by`
    # on the one key that they share, the rank: every request with every other.
    preempted = (
        events(trace)
        .filter(pl.col("event") == "preempt")
        .rename({"by_request": "younger"})
        .join(ages, on=REQUEST, how="left")
        .join(by, on=["rank", "younger"], how="left")
        .filter(pl.col("younger_age") > pl.col("age"))
    )
    return _inversions(preempted, "preempted")


def _admitted_after_younger(trace: Trace, known: pl.LazyFrame) -> pl.LazyFrame:
    """First admissions against age; the earliest of the younger is a minimum from the end."""
    left = pl.col("event").is_in([*LEAVES, *ENDS])
    admitted = pl.col("event").is_in(LEAVES)
    left_queue = (
        events(trace)
        .group_by(REQUEST)
        .agg(
            left_ns=pl.col("ts_ns").filter(left).min(),
            admit_ns=pl.col("ts_ns").filter(admitted).min(),
            step=pl.col("step").filter(admitted).min(),
        )
    )
    from_end = known.join(left_queue, on=REQUEST, how="left").sort(
        "rank", "age", descending=[False, True]
    )
    earliest = pl.col("admit_ns") == pl.col("admit_ns").cum_min()
    younger = from_end.with_columns(
        pl.when(earliest).then(column).forward_fill().shift(1).over("rank").alias(into)
        for column, into in (("admit_ns", "ts_ns"), ("step", "at_step"), ("request", "younger"))
    )
    waited_on = pl.col("left_ns").fill_null(pl.col("ended_ns") + 1) > pl.col("ts_ns")
    passed = younger.filter(waited_on, pl.col("ts_ns") > pl.col("arrive_ns"))
    ready = _when_ready(passed.drop("step").rename({"at_step": "step"}), trace)
    return _inversions(ready, "passed over")


def _against_the_order(passed: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Leave out who was passed by one that stood before it when the queue was sorted last."""
    if not trace.has("queue_order"):
        return passed
    last = queue_places(trace)
    for who, place in (("request", "own_place"), ("younger", "its_place")):
        at = last.rename({"request": who, "sorted_ns": f"{place}_ns", "place": place})
        passed = passed.sort("ts_ns").join_asof(
            at, left_on="ts_ns", right_on=f"{place}_ns", by=["rank", who], check_sortedness=False
        )
    is_same = pl.col("own_place_ns") == pl.col("its_place_ns")
    is_before = (pl.col("its_place") < pl.col("own_place")) & is_same
    names = ("own_place", "its_place", "own_place_ns", "its_place_ns")
    return passed.filter(~is_before.fill_null(value=False)).drop(names)


def _when_ready(passed: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Leave out who was passed over while it was not ready, by its own account."""
    unready = left_out(trace).filter(is_passed_by())
    unready = unready.select(*REQUEST, told_ns="ts_ns", until_ns="end_ns").sort("told_ns")
    told = passed.sort("ts_ns").join_asof(
        unready, left_on="ts_ns", right_on="told_ns", by=list(REQUEST), check_sortedness=False
    )
    # What is told in the step of the admission holds in it, too: then `told_ns` is `ts_ns`.
    return told.filter((pl.col("until_ns") <= pl.col("ts_ns")).fill_null(value=True))


def _left_out_for_younger(trace: Trace, known: pl.LazyFrame) -> pl.LazyFrame:
    """Preempted requests that were considered in a step which let a younger one in."""
    ages = known.select(*REQUEST, "age", "arrive_ns")
    let_in = (
        events(trace)
        .filter(pl.col("event").is_in(LEAVES))
        .join(ages, on=REQUEST)
        .group_by("rank", "step")
        .agg(
            younger_age=pl.col("age").max(),
            younger=pl.col("request").sort_by("age").last(),
        )
    )
    considered = (
        trace.decisions.filter(
            pl.col("subject_kind") == "request",
            pl.col("verdict").is_in(LEFT_OUT),
            ~is_passed_by() | (pl.col("verdict") != "deferred"),
        )
        .select("rank", "step", "ts_ns", pl.col("subject").alias("request"))
        .drop_nulls()
        .join(ages, on=REQUEST, how="left")
        .join(let_in, on=["rank", "step"], how="left")
        .filter(pl.col("younger_age") > pl.col("age"))
    )
    again = waits(trace).rename({"step": "from_step"}).sort("from_ns")
    is_waiting_again = (pl.col("ts_ns") < pl.col("to_ns")) & (
        pl.col("from_ns") > pl.col("arrive_ns")
    )
    waiting = considered.sort("ts_ns").join_asof(
        again, left_on="ts_ns", right_on="from_ns", by=list(REQUEST), check_sortedness=False
    )
    return _inversions(waiting.filter(is_waiting_again), "passed over")
