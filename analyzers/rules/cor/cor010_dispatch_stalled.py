"""dispatch-stalled: tasks are left, cores are idle, and nothing happens any more.

## What it finds
Steps that ended with tasks pending, and tasks that were pending for longer than `min_stall_ns`
after the last dispatch, start, end or retirement of their step. One finding per step. It names the
class of the stall, the first of these that a task of the step is in:

- *a part of a MIX never started*: the other parts hold their cores and wait for it
- *a block never ended*: its core is stuck; of one that was admitted to a group of which a core was
  held (COR001), the message says who was in the way
- *a completion was lost*: all blocks of a task ended, and it did not retire
- *a release was lost*: all that a task waits for is over, and it did not become ready
- *ready and not dispatched*: nobody looks at the queue, or no group is ever admitted
- *not submitted*: all that was submitted is over; a ring is full and nobody moves it, or the oldest
  task is kept until its own scope ends, which is a deadlock of structure
- *waits for others that wait*: a cycle

`min_stall_ns` is a hundred passes of a scheduler thread (0.1 ms each): a thread that looks at its
queues leaves no task ready for so long, whatever the graph. A share of the run would miss a stall
at the end of a long run. Tasks that are still pending when their step ends are found after any
time.

A task that had been ready for less than one pass when its step was given up, while others were not
submitted, is not counted as ignored by the threads: the runtime sees at once that a ring can never
move.

If the runtime itself gave the step up, the message has the runtime's count of tasks, and the
runtime's class (S1 to S5) if its log names none of the remaining tasks.

## Why it hurts
The step never ends. A watchdog, if there is one, ends the process after its timeout and says little
about why.

## Example
    step 1 stalled with 76 tasks left, not submitted: qk r5 t1 is the first; no progress for
    500.0 ms with 24 of 24 cores idle

## How to fix
By class: see which core the part was sent to (COR011); ask that core why; look for completions that
overwrite each other, or for a ring that moves by one task and not past those that retired before.
Where a ring is full by structure, make it larger or end the scope earlier: it is known at once, and
the runtime says so, while a ring that lost an advance is only given up after a timeout.

## References
The stall classes S1-S5 that the `tensormap_and_ringbuffer` runtime of hw-native-sys/simpler prints
on a scheduler timeout.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.rules.cor.admitted_in_part import admitted_in_part
from stepscope.analyzers.rules.cor.core_layout import configured
from stepscope.analyzers.rules.cor.naming import with_label, with_name
from stepscope.analyzers.rules.cor.occupancy import BLOCK, holds
from stepscope.analyzers.rules.cor.stalls import (
    COMPLETION,
    NEVER_ENDED,
    PART_MISSING,
    PASS_NS,
    READY,
    RELEASE,
    STEP,
    UNSUBMITTED,
    WAITS,
    pending_tasks,
)
from stepscope.analyzers.views.known import knows
from stepscope.ingest.readers.core_masks import STALL, TASKS, TASKS_OVER
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

FIX = "mend what stalls first: the steps after it may only have waited for it"
FIXES = {
    PART_MISSING: "see which core the missing part was sent to, and what holds it there",
    NEVER_ENDED: "ask the core why its block does not end: a wrong core, or a wait for a peer",
    COMPLETION: "look for completions that overwrite each other before they are handled",
    RELEASE: "count down what waits for a task exactly once for each that it waits for",
    READY: "wake a scheduler thread when a task becomes ready; see what admission refuses it",
    UNSUBMITTED: "move the ring past all tasks that are over, also those that retired out of turn",
    WAITS: "break the cycle of dependencies",
}
FIX_OF_STRUCTURE = (
    "make the rings larger, or end scopes early: the oldest task is kept until its own scope ends, "
    "and the scope does not fit"
)
FIX_OF_CONFLICT = "fix the admission that COR001 reports: a part of the block came to a core in use"
OF_RUNTIME = {"S1": NEVER_ENDED, "S3": READY, "S4": WAITS, "S5": UNSUBMITTED}
"""The runtime's classes of stalls, as it numbers them."""
CLASS = r"^S\d:"
SCOPE_DEADLOCK = re.compile("scope.?deadlock", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DispatchStalled:
    """Tasks of a step were left and it made no progress."""

    code: ClassVar[str] = "COR010"
    name: ClassVar[str] = "dispatch-stalled"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("tasks.outcome",)

    min_stall_ns: int = 10_000_000
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether progress was recorded, or steps that ended or were given up.

        Without a clock, only what the runtime itself reports counts.
        """
        moments = ("core_spans", "tasks.ready_ns", "tasks.retired_ns")
        ended = knows(trace, "steps.dur_ns", "tasks.step")
        is_given_up = bool(_counted(trace).head(1).collect().height)
        if not trace.manifest.clock.has_times:
            reported = trace.steps.filter(pl.col("executed_path").str.contains(CLASS))
            return is_given_up or bool(reported.head(1).collect().height)
        return ended or is_given_up or any(knows(trace, moment) for moment in moments)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per step that stalled, in order of time."""
        if not trace.tasks.filter(pl.col("outcome") == "pending").head(1).collect().height:
            return []
        has_clock = trace.manifest.clock.has_times
        first = pl.all().exclude(STEP).sort_by("state", "ts_ns", "task").first()
        steps = (
            pending_tasks(trace)
            .group_by(STEP)
            .agg(first, num_left=pl.len(), submitted_ns=pl.col("ts_ns").max())
            .join(_ends(trace), on=STEP, how="left", nulls_equal=True)
            .join(_cores(trace), on="rank", how="left")
            .with_columns(end_ns=pl.max_horizontal("end_ns", "submitted_ns", "last_ns"))
            .with_columns(stall_ns=pl.col("end_ns") - pl.coalesce("last_ns", "begin_ns"))
            .join(_counted(trace), on=STEP, how="left", nulls_equal=True)
            .with_columns(lists_all=pl.lit(_lists_all(trace)), has_clock=pl.lit(has_clock))
        )
        stalled = ((pl.col("is_over") & has_clock) | _is_recorded()).fill_null(value=False)
        if trace.manifest.closed and has_clock:
            stalled |= pl.col("stall_ns") > self.min_stall_ns
        named = with_name(with_label(steps.filter(stalled).collect().lazy(), trace), trace)
        is_told = pl.lit(knows(trace, "core_spans.dispatch_ns"))
        conflicts = admitted_in_part(trace).filter(is_told).select(*BLOCK, "conflict")
        named = named.join(conflicts, on=BLOCK, how="left")
        rows = named.with_columns(ts_ns=pl.coalesce("last_ns", "ts_ns")).sort("ts_ns", *STEP)
        return each(self, rows.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        state = _state(row)
        where = "the graph" if row["step"] is None else f"step {row['step']}"
        which = row["label"] if row["block"] is not None else row["name"]
        is_named = row["task"] is not None
        on_core = "" if row["core"] is None else f" on core {row['core']}"
        first = f"{which}{on_core} is the first" if is_named else "the log names none of them"
        message = (
            f"{where} stalled with {_how_many(row)} left, {state}: "
            f"{first}{_led_to_by(row)}; {_how_long(row)}"
        )
        evidence: Evidence = {
            "class": state,
            "first task": which if is_named else None,
            "tasks over": row["num_over"],
            "tasks": row["num_tasks"],
            "tasks left": _num_left(row),
            "stall_ns": row["stall_ns"] if _is_timed(row) else None,
            "cores idle": _num_idle(row),
            "cores": row["num_cores"],
            "recorded": row["executed_path"],
        }
        fix = FIX_OF_STRUCTURE if _is_structural(row) else FIXES[state]
        if _is_led_to(row):
            evidence["conflict"] = row["conflict"]
            fix = FIX_OF_CONFLICT
        return finding(self, message, fix, at=row, evidence=evidence)


def _state(row: Mapping[str, Any]) -> str:
    """The class of the stall; the runtime's own if the log names no remaining task."""
    by_runtime = OF_RUNTIME.get((row["executed_path"] or "")[:2])
    return by_runtime if row["task"] is None and by_runtime else str(row["state"])


def _num_left(row: Mapping[str, Any]) -> int:
    """The number of remaining tasks: the runtime's count, else the tasks that are listed."""
    counted = None if row["num_tasks"] is None else row["num_tasks"] - row["num_over"]
    return counted if counted and counted > 0 else int(row["num_left"])


def _how_many(row: Mapping[str, Any]) -> str:
    num = _num_left(row)
    if row["num_tasks"] is not None and num == row["num_tasks"] - row["num_over"]:
        return f"{num:,} of {times(row['num_tasks'], 'task')}"
    at_least = "" if row["lists_all"] else "at least "
    return f"{at_least}{times(num, 'task')}"


def _is_timed(row: Mapping[str, Any]) -> bool:
    """Whether the end of the step, or any time after its last progress, is known."""
    return bool(row["has_clock"] and (row["is_over"] or row["stall_ns"]))


def _is_led_to(row: Mapping[str, Any]) -> bool:
    """Whether the block that never ended was admitted to a group of which a core was held."""
    return row["state"] == NEVER_ENDED and row["conflict"] is not None


def _led_to_by(row: Mapping[str, Any]) -> str:
    return f", which {row['conflict']} (COR001)" if _is_led_to(row) else ""


def _is_structural(row: Mapping[str, Any]) -> bool:
    """Whether a full ring can never move: it is said, or the step was given up without waiting."""
    if row["state"] != UNSUBMITTED:
        return False
    is_known = row["has_clock"] and row["last_ns"] is not None and row["is_over"]
    waited_ns = row["stall_ns"] if is_known else None
    at_once = waited_ns is not None and waited_ns < PASS_NS
    return at_once or bool(SCOPE_DEADLOCK.search(row["executed_path"] or ""))


def _lists_all(trace: Trace) -> bool:
    """Tell whether every task is in the table, as far as the trace says."""
    return trace.manifest.tables.get("tasks") not in ("partial", "inferred")


def _how_long(row: Mapping[str, Any]) -> str:
    """How long nothing went on, as far as any progress is known, and how many cores were idle."""
    if not _is_timed(row):
        return f"the runtime gave it up ({row['executed_path']}), at a time that is not recorded"
    stall = duration(row["stall_ns"] or 0)
    known = row["last_ns"] is not None
    how_long = f"no progress for {stall}" if known else f"it ended {stall} after it began"
    num_idle = _num_idle(row)
    idle = None if num_idle is None else f"{num_idle} of {times(row['num_cores'], 'core')} idle"
    return f"{how_long} with {idle}" if idle else how_long


def _num_idle(row: Mapping[str, Any]) -> int | None:
    """How many cores no block held; None where no block of the rank is known at all."""
    return None if row["num_held"] is None else (row["num_cores"] or 0) - row["num_held"]


def _ends(trace: Trace) -> pl.LazyFrame:
    """When each step ended, whether it did, and the path that it says it took."""
    ends = pl.col("ts_ns").clip(-FAR_NS, FAR_NS) + pl.col("dur_ns").clip(0, FAR_NS)
    return trace.steps.group_by(STEP).agg(
        begin_ns=pl.col("ts_ns").min(),
        end_ns=ends.max(),
        is_over=pl.col("dur_ns").is_not_null().any(),
        executed_path=pl.col("executed_path").max(),
    )


def _is_recorded() -> pl.Expr:
    """Whether the runtime itself says that the step stalled."""
    return pl.col("executed_path").str.contains(CLASS) | pl.col("num_tasks").is_not_null()


def _counted(trace: Trace) -> pl.LazyFrame:
    """The runtime's counts of completed tasks and of all tasks, for steps that it gave up."""
    own = trace.counters.filter(pl.col("track") == STALL)
    over, in_all = (
        pl.col("value").filter(pl.col("name") == name).last().cast(pl.Int64)
        for name in (TASKS_OVER, TASKS)
    )
    return own.group_by(STEP).agg(num_over=over, num_tasks=in_all)


def _cores(trace: Trace) -> pl.LazyFrame:
    """How many cores each rank has, or else used, and how many of them a block holds for ever."""
    held = pl.col("core").filter(pl.col("end_ns") >= FAR_NS)
    used = (
        holds(trace)
        .group_by("rank")
        .agg(
            num_used=pl.col("core").n_unique().cast(pl.Int64),
            num_held=held.n_unique().cast(pl.Int64),
        )
    )
    num_cores = pl.max_horizontal("num_used", pl.lit(len(configured(trace)), pl.Int64))
    ranks = trace.tasks.select("rank").unique()
    return ranks.join(used, on="rank", how="left").with_columns(num_cores=num_cores)
