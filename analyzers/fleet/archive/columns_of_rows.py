"""The tables of an archive: what each row is, and rows made of what a trace came to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import polars as pl

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.findings.finding_table import FINDING_COLUMNS
from stepscope.analyzers.many_runs.trace_row import SCHEMA

Row = dict[str, Any]
DATE = "date"
"""The partition: the day (UTC) on which a row came into the archive."""
READ, FAILED = "read", "failed"
TABLES: Mapping[str, pl.Schema] = {
    "traces": pl.Schema({
        "key": pl.String(), **SCHEMA, "num_files": pl.Int64(), "num_failed": pl.Int64(),
    }),
    "findings": pl.Schema({
        "key": pl.String(), "trace": pl.String(), "place": pl.Int32(), **FINDING_COLUMNS,
        "end_ns": pl.Int64(), "fix": pl.String(), "evidence": pl.String(),
    }),
    "failures": pl.Schema({
        "key": pl.String(), "trace": pl.String(), "path": pl.String(), "sha256": pl.String(),
        "reason": pl.String(),
    }),
    "files": pl.Schema({
        "key": pl.String(), "version": pl.String(), "trace": pl.String(), "path": pl.String(),
        "sha256": pl.String(), "num_bytes": pl.Int64(), "sent_bytes": pl.Int64(),
        "state": pl.String(),
    }),
}  # fmt: skip
"""Of every table its columns. `key` is of a trace: what is in its files, whatever their names.

traces    a trace as `stepscope summary` sums it up, and of how many files, some of which failed
findings  what `stepscope check` finds, in its order, which is `place`; `evidence` is JSON
failures  a file that cannot be read, and why; `trace` is the job that it is missing from
files     every file that was looked at, and how many bytes of it a job's rules were sent
"""


class FileRow(msgspec.Struct, frozen=True):
    """A file that was looked at; without a digest where it cannot be read at all."""

    path: str
    sha256: str | None
    num_bytes: int | None
    sent_bytes: int | None = None
    why: str = ""


class Record(msgspec.Struct, frozen=True):
    """All that an archive is told of a trace: it is there as a whole or not at all."""

    key: str
    version: str
    trace: str
    files: tuple[FileRow, ...]
    row: dict[str, Any] | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def failed(self) -> tuple[FileRow, ...]:
        """Its files that cannot be read."""
        return tuple(file for file in self.files if file.why)


def frames_of(records: Iterable[Record]) -> dict[str, pl.DataFrame]:
    """The rows of each table."""
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    for record in records:
        whose = {"key": record.key, "trace": record.trace}
        if record.row is not None:
            counts = {"num_files": len(record.files), "num_failed": len(record.failed)}
            rows["traces"].append({**record.row, **whose, **counts})
        rows["findings"] += [
            {**whose, "place": place, **_finding(each)}
            for place, each in enumerate(record.findings)
        ]
        rows["failures"] += [
            {**whose, "path": file.path, "sha256": file.sha256, "reason": file.why}
            for file in record.failed
        ]
        rows["files"] += [
            {
                **whose, "version": record.version, "path": file.path, "sha256": file.sha256,
                "num_bytes": file.num_bytes, "sent_bytes": file.sent_bytes,
                "state": FAILED if file.why else READ,
            }
            for file in record.files
        ]  # fmt: skip
    return {
        name: pl.DataFrame([{each: row.get(each) for each in schema} for row in rows[name]], schema)
        for name, schema in TABLES.items()
    }


def _finding(finding: Finding) -> Row:
    evidence = json.dumps(finding.evidence, ensure_ascii=False)
    told = {name: getattr(finding, name) for name in (*FINDING_COLUMNS, "end_ns", "fix")}
    return {**told, "severity": str(finding.severity), "evidence": evidence}
