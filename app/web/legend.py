"""The legend: the states that a trace shows, each with its colour and its second cue."""

from __future__ import annotations

import polars as pl

from stepscope.app.palette import (
    AIC,
    AIV,
    DECODE,
    HELD,
    MIX,
    PREEMPTED,
    PREFILL,
    RECOMPUTE,
    STATES,
    WAITING,
    State,
)
from stepscope.ingest.trace import Trace


def states_of(trace: Trace) -> list[State]:
    """The states that the trace's rows come in, in the order of the palette."""
    return [STATES[at] for at in sorted(_of_requests(trace) | _of_steps(trace) | _of_cores(trace))]


def _of_requests(trace: Trace) -> set[int]:
    recompute = pl.col("is_recompute").fill_null(value=False).any().alias("recompute")
    row = trace.batch_rows.select(*_any("phase", "prefill", "decode"), recompute)
    events = trace.lifecycle.select(_any("event", "arrive", "preempt", "defer"))
    told = row.collect().row(0, named=True) | events.collect().row(0, named=True)
    found = {"prefill": PREFILL, "decode": DECODE, "recompute": RECOMPUTE, "preempt": PREEMPTED}
    waits = {WAITING} if told["arrive"] or told["defer"] or told["preempt"] else set()
    return waits | {state for name, state in found.items() if told[name]}


def _of_steps(trace: Trace) -> set[int]:
    told = trace.steps.select(_any("kind", "prefill", "decode", "mixed")).collect().row(0)
    prefill, decode, mixed = told
    found = {PREFILL: prefill or mixed, DECODE: decode or mixed}
    return {state for state, seen in found.items() if seen}


def _of_cores(trace: Trace) -> set[int]:
    shapes = trace.core_spans.select(_any("shape", "AIC", "AIV", "MIX")).collect().row(0)
    found = {state for state, seen in zip((AIC, AIV, MIX), shapes, strict=True) if seen}
    return found | ({HELD} if found else set())


def _any(column: str, *values: str) -> list[pl.Expr]:
    return [(pl.col(column) == value).any().alias(value) for value in values]
