"""What each thread of a device's scheduler does at any time, and since when.

A thread does what its last row says. What a step brings about is there once its batch has been
formed, which is where a session stands at a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from stepscope.app.debug.held.flat_rows import FlatRows
from stepscope.app.debug.held.narrow_numbers import searched
from stepscope.ingest.trace import Trace

PHASE_COLUMNS = ("step", "ts_ns", "thread", "phase")
ORCHESTRATOR = "orchestrator"


class Phase(NamedTuple):
    """What a thread does, and since when."""

    phase: str
    since_ns: int


Phases = Mapping[str, Phase]
"""By the name of a thread: `thread 0`, or `orchestrator`."""


class ThreadPhases:
    """Answers for any time, behind all that happened then."""

    def __init__(self, threads: FlatRows, phases: FlatRows) -> None:
        """Take what `phases_of` gives."""
        self._threads = threads.rows(range(len(threads)), ("name", "first", "last"))
        self._phases, self._from = phases, phases.numbers("from_ns")

    def at(self, ts_ns: int) -> dict[str, Phase]:
        """What each thread does that has begun by then."""
        found: dict[str, Phase] = {}
        for name, first, last in self._threads:
            place = first + searched(self._from[first:last], ts_ns, "right") - 1
            if place >= first:
                [row] = self._phases.rows([place], ("phase", "ts_ns"))
                found[name] = Phase(*row)
        return found


def phases_of(rows: pl.DataFrame, formed: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The rows of one rank, PHASE_COLUMNS, thread by thread; `formed` is as `stays_of` has it."""
    begins = formed.select("step", begins_ns=pl.col("ts_ns") + 1).unique("step", keep="first")
    phases = (
        rows.drop_nulls(("ts_ns", "phase"))
        .join(begins, on="step", how="left", maintain_order="left")
        .with_columns(from_ns=pl.max_horizontal("ts_ns", "begins_ns"), name=_name())
        .sort("thread", "ts_ns", nulls_last=True, maintain_order=True)
    )
    threads = phases.group_by("name", maintain_order=True).agg(num=pl.len().cast(pl.Int64))
    last = pl.col("num").cum_sum()
    return {
        "threads": threads.select("name", first=last - pl.col("num"), last=last),
        "phases": phases.select("from_ns", "ts_ns", "phase"),
    }


def phases_at(trace: Trace, rank: int, ts_ns: int) -> dict[str, Phase] | None:
    """What the threads of a rank do at a time, without a session; None where it is not told."""
    told = trace.thread_phases.filter(pl.col("rank") == rank)
    if not len(told.head(1).collect()):
        return None
    then = told.filter(pl.col("ts_ns") <= ts_ns).sort("ts_ns", maintain_order=True)
    last = then.group_by("thread").agg(pl.col("phase", "ts_ns").last()).sort("thread")
    rows = last.select(_name(), "phase", "ts_ns").collect().rows()
    return {name: Phase(phase, since_ns) for name, phase, since_ns in rows}


def thread_number(name: str) -> int | None:
    """The number of a thread of the scheduler; None of the orchestrator."""
    number = name.removeprefix("thread ")
    return None if name == ORCHESTRATOR else int(number)


def _name() -> pl.Expr:
    named = pl.format("thread {}", pl.col("thread"))
    return pl.coalesce(named, pl.lit(ORCHESTRATOR)).alias("name")
