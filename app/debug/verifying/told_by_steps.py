"""Whether the state that rows add up to is what the steps themselves counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.app.debug.engine_state import State
from stepscope.ingest.trace import Trace

COUNTS = ("num_waiting", "num_running", "kv_blocks_free")


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A step counts `told` of something where the rows up to it come to `found`."""

    step: int
    what: str
    told: int
    found: int


def mismatches(trace: Trace, rank: int, states: Iterable[State]) -> Iterator[Mismatch]:
    """Every count of a rank's steps that its state there does not come to.

    What the step or the state does not know is not held against the other.
    """
    told = _counts(trace, rank)
    for state in states:
        step = state.step
        counts = None if step is None else told.get(step)
        if step is None or counts is None:
            continue
        found = _found(state, counts["kv_blocks_total"])
        for what in COUNTS:
            number, counted = found[what], counts[what]
            if number is not None and counted is not None and number != counted:
                yield Mismatch(step, what, counted, number)


def _counts(trace: Trace, rank: int) -> dict[int, dict[str, int | None]]:
    rows = trace.steps.filter(pl.col("rank") == rank).drop_nulls("step")
    counted = rows.select("step", *COUNTS, "kv_blocks_total").unique("step", keep="first")
    return {row["step"]: row for row in counted.collect().iter_rows(named=True)}


def _found(state: State, num_blocks: int | None) -> dict[str, int | None]:
    held = None if state.kv_blocks is None else len(state.kv_blocks)
    return {
        "num_waiting": None if state.waiting is None else len(state.waiting),
        "num_running": None if state.running is None else len(state.running),
        "kv_blocks_free": None if held is None or num_blocks is None else num_blocks - held,
    }
