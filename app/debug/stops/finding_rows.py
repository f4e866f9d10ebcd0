"""Findings as a table, so that a condition can be about them as about any other."""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.check.run import CheckResult

FINDINGS = "findings"
FINDING_COLUMNS: dict[str, pl.DataType] = {
    "rank": pl.Int32(), "step": pl.Int64(), "ts_ns": pl.Int64(), "code": pl.String(),
    "severity": pl.String(), "name": pl.String(), "request": pl.String(), "task": pl.Int64(),
    "core": pl.Int64(), "group": pl.Int64(), "message": pl.String(), "count": pl.Int64(),
}  # fmt: skip


def findings_of(checked: CheckResult) -> pl.DataFrame:
    """A row for each finding; rank 0 where it names none."""
    rows = [
        {name: getattr(finding, name) for name in FINDING_COLUMNS}
        | {"severity": str(finding.severity), "rank": finding.rank or 0}
        for finding in checked.findings
    ]
    return pl.DataFrame(rows, schema=FINDING_COLUMNS)
