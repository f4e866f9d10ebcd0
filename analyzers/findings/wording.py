"""Numbers as findings say them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepscope.ingest.times import MS, SECOND, US

_UNITS = ((SECOND, "s"), (MS, "ms"), (US, "µs"))
NUMBER = r"\d+"  # what stands for one in a text: of texts that differ in these alone, one is told


def duration(ns: float) -> str:
    """A time in the unit in which it is read best: `840 ns`, `3.0 µs`, `12.4 ms`, `8.1 s`."""
    for size, unit in _UNITS:
        if abs(ns) >= size:
            return f"{ns / size:,.1f} {unit}"
    return f"{ns:.0f} ns"


def step_range(row: Mapping[str, Any]) -> str:
    """Successive steps, with their duration if `has_clock`: `3 to 4, 10 ns`."""
    steps = f"{row['step']} to {row['last_step']}"
    return f"{steps}, {duration(row['end_ns'] - row['ts_ns'])}" if row["has_clock"] else steps


def times(count: int, what: str) -> str:
    """A count of things: `1 block`, `3 blocks`, `12,000 blocks`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
