"""Small frames that several rules need are made once for a trace, and kept as long as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import polars as pl

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

_made: WeakKeyDictionary[Trace, dict[str, pl.DataFrame]] = WeakKeyDictionary()


def once(trace: Trace, what: str, make: Callable[[], pl.LazyFrame]) -> pl.LazyFrame:
    """Give what `make` made for this trace under the name `what`; it has to be small."""
    of_trace = _made.setdefault(trace, {})
    if what not in of_trace:
        of_trace[what] = make().collect()
    return of_trace[what].lazy()
