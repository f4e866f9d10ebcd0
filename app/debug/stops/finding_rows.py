"""Findings as a table, so that a condition can be about them as about any other."""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.check.run import CheckResult
from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace

FINDINGS = "findings"
FINDING_COLUMNS: dict[str, pl.DataType] = {
    "rank": pl.Int32(), "step": pl.Int64(), "ts_ns": pl.Int64(), "code": pl.String(),
    "severity": pl.String(), "name": pl.String(), "request": pl.String(), "task": pl.Int64(),
    "core": pl.Int64(), "group": pl.Int64(), "message": pl.String(), "count": pl.Int64(),
}  # fmt: skip


def findings_of(checked: CheckResult, rank: int) -> pl.DataFrame:
    """A row for each finding; one that names no rank is of the whole run, and stands at `rank`."""
    rows = [
        {name: getattr(finding, name) for name in FINDING_COLUMNS}
        | {
            "severity": str(finding.severity),
            "rank": rank if finding.rank is None else finding.rank,
        }
        for finding in checked.findings
    ]
    return pl.DataFrame(rows, schema=FINDING_COLUMNS)


def lowest_rank(trace: Trace) -> int:
    """The lowest rank that has a step, else a row of any kind: the one whose steps are walked."""
    every = [trace.table(table.name).select(pl.col("rank").min()) for table in TABLES]
    told = {
        table.name: frame.item() for table, frame in zip(TABLES, pl.collect_all(every), strict=True)
    }
    known = told.values() if told["steps"] is None else [told["steps"]]
    return min((int(rank) for rank in known if rank is not None), default=0)
