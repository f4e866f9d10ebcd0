"""The order of accesses as the rules ask for it: of a trace, whose clocks are computed once.

What orders two accesses is defined in `ingest/derive/access_order.py`, which timelines use as well.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.views.once import once
from stepscope.ingest.derive import access_order
from stepscope.ingest.derive.access_order import HOST
from stepscope.ingest.trace import Trace

__all__ = ["HOST", "knowledge", "names_events", "touches", "unordered"]


def names_events(trace: Trace) -> bool:
    """Tell whether accesses that record or wait for an event name it; True without any."""
    return access_order.names_events(trace.accesses)


def touches(trace: Trace) -> pl.LazyFrame:
    """Reads and writes of buffers, as `access_order.touches` gives them."""
    return access_order.touches(trace.accesses)


def unordered(of: pl.LazyFrame, others: pl.LazyFrame, strategy: str, trace: Trace) -> pl.LazyFrame:
    """Pairs of accesses that nothing orders, as `access_order.unordered` gives them."""
    return access_order.unordered(of, others, strategy, lambda: knowledge(trace))


def knowledge(trace: Trace) -> pl.LazyFrame:
    """What each stream knows of another, as `access_order.knowledge` gives it."""
    return once(trace, "knowledge", lambda: access_order.knowledge(trace.accesses))
