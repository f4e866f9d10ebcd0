"""Profiles of several ranks as one trace."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.ingest.manifest import Manifest
from stepscope.ingest.trace import Trace

TABLES = ("steps", "collectives")


def joined(shared_data: Path, *names: str) -> Trace:
    """The steps and collectives of real profiles, each of a rank of its own."""
    traces = [Trace.open(shared_data / "kineto" / f"{name}.json.gz") for name in names]
    tables = {table: pl.concat([trace.table(table) for trace in traces]) for table in TABLES}
    ranks = tuple(rank for trace in traces for rank in trace.manifest.ranks)
    states = dict.fromkeys(TABLES, "inferred")
    return Trace.from_tables(tables, Manifest("profiles", ranks=ranks, tables=states))
