"""Findings as a table, so that a query or a condition can be about them as about any other."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from stepscope.analyzers.findings.finding import Finding

FINDINGS = "findings"
FINDING_COLUMNS: dict[str, pl.DataType] = {
    "rank": pl.Int32(), "step": pl.Int64(), "ts_ns": pl.Int64(), "code": pl.String(),
    "severity": pl.String(), "name": pl.String(), "request": pl.String(), "task": pl.Int64(),
    "core": pl.Int64(), "group": pl.Int64(), "message": pl.String(), "count": pl.Int64(),
}  # fmt: skip


def findings_table(findings: Iterable[Finding]) -> pl.DataFrame:
    """A row for each finding, in their order; null is what one does not name."""
    rows = [
        {name: getattr(finding, name) for name in FINDING_COLUMNS}
        | {"severity": str(finding.severity)}
        for finding in findings
    ]
    return pl.DataFrame(rows, schema=FINDING_COLUMNS)
