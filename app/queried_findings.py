"""What a query sees as `findings`: what `check` finds in the trace, before any baseline."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import polars as pl

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding_table import findings_table
from stepscope.app.check_config import load_config
from stepscope.ingest.trace import Trace

_FOUND: WeakKeyDictionary[Trace, pl.DataFrame] = WeakKeyDictionary()


def findings_of(trace: Trace) -> pl.LazyFrame:
    """Check a trace as `stepscope.toml` says; once, however often it is asked about."""
    if trace not in _FOUND:
        _FOUND[trace] = findings_table(check(trace, load_config().rules()).findings)
    return _FOUND[trace].lazy()
