"""Laying out a trace, and painting a window of 64 lanes x 1600 pixels at any zoom.

Blocks of three shapes, one after the other on the cores of 22 groups, each held for 100 ns before
it runs: every event is two spans. A window is the whole trace, a tenth of it, and so on; each
figure is the median of queries at different places.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from stepscope.app.timeline import Timeline
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.trace import Trace

NUM_GROUPS, NUM_LANES, WIDTH, NUM_PLACES = 22, 64, 1600, 15
EVENTS = (1_000_000, 10_000_000)
ZOOMS = (1, 10, 100, 1_000, 10_000)


def measure(events: tuple[int, ...] = EVENTS) -> list[dict[str, Any]]:
    """Return one row per number of events: times in ms to build and to query at each zoom."""
    return [_measured(num_events) for num_events in events]


def trace_of_blocks(num_events: int) -> Trace:
    """Blocks of random length and shape, evenly spread over the cores."""
    random = np.random.default_rng(1)
    core = np.sort(np.arange(num_events) % (NUM_GROUPS * 3))
    gap = random.integers(100, 1_000, num_events)
    length = random.integers(200, 4_000, num_events)
    end = np.cumsum(gap + length)
    before_core = np.searchsorted(core, core)
    end -= np.concatenate(([0], end))[before_core]
    blocks = pl.DataFrame(
        {
            "ts_ns": end - length,
            "dispatch_ns": end - length - 100,
            "end_ns": end,
            "task": np.arange(num_events),
            "block": np.zeros(num_events, np.int32),
            "group": (core // 3).astype(np.int32),
            "core": core.astype(np.int32),
            "core_kind": _named(core % 3, ["AIC", "AIV0", "AIV1"]),
            "shape": _named(random.integers(0, 3, num_events), ["AIC", "AIV", "MIX"]),
        }
    )
    return Trace.from_tables({"core_spans": blocks}, Manifest(producer="bench"))


def _named(codes: np.ndarray[Any, Any], names: list[str]) -> pl.Series:
    return pl.Series(codes).replace_strict(range(len(names)), names, return_dtype=pl.String)


def _measured(num_events: int) -> dict[str, Any]:
    trace = trace_of_blocks(num_events)
    began = time.perf_counter()
    timeline = Timeline.of(trace)
    row: dict[str, Any] = {"events": num_events, "build_ms": (time.perf_counter() - began) * 1e3}
    query_ms = {f"1/{zoom}_ms": _query_ms(timeline, zoom) for zoom in ZOOMS}
    worst = {"worst_query_ms": max(query_ms.values())}
    return row | query_ms | worst | {"minimap_ms": _ms(lambda: timeline.load(WIDTH))}


def _query_ms(timeline: Timeline, zoom: int) -> float:
    first, last = timeline.bounds
    width_ns = (last - first) // zoom
    lanes = range(NUM_LANES)
    starts = np.linspace(first, last - width_ns, NUM_PLACES, dtype=np.int64).tolist()
    return statistics.median(
        _ms(partial(timeline.query, t0, t0 + width_ns, WIDTH, lanes)) for t0 in starts
    )


def _ms(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e3
