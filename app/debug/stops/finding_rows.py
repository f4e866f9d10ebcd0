"""Findings as rows that stand at a place in the run, so that a condition can be about them."""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.finding_table import findings_table
from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace


def findings_of(checked: CheckResult, rank: int) -> pl.DataFrame:
    """A row for each finding; one that names no rank is of the whole run, and stands at `rank`."""
    return findings_table(checked.findings).with_columns(pl.col("rank").fill_null(rank))


def lowest_rank(trace: Trace) -> int:
    """The lowest rank that has a step, else a row of any kind: the one whose steps are walked."""
    every = [trace.table(table.name).select(pl.col("rank").min()) for table in TABLES]
    told = {
        table.name: frame.item() for table, frame in zip(TABLES, pl.collect_all(every), strict=True)
    }
    known = told.values() if told["steps"] is None else [told["steps"]]
    return min((int(rank) for rank in known if rank is not None), default=0)
