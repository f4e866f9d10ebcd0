"""For each rule the least that makes it fire: a few rows, and of those no column too many.

They were cut down from the traces of the rules' own tests: take any row or any column away, and the
rule that was meant is silent. A rule that finds its fault in several ways has one of each.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepscope.analyzers.check.registry import by_code
from stepscope.analyzers.findings.rule import Rule
from stepscope.ingest.manifest import LogMessage, ReadReport
from stepscope.ingest.trace import Trace
from tests.traces import trace_of

_FILE = Path(__file__).with_suffix(".json")


@dataclass(frozen=True, slots=True)
class LeastFault:
    """A rule with its thresholds, what it is to find, and the rows to find it in."""

    rule: Rule
    what: str
    manifest: dict[str, Any]
    tables: dict[str, list[dict[str, Any]]]

    def trace(self, *, without: tuple[str, str] | None = None) -> Trace:
        """The trace, or what is left of it `without` a column of a table."""
        table, column = without or ("", "")
        tables: dict[str, Any] = {
            name: [row | {column: None} if name == table else row for row in rows]
            for name, rows in self.tables.items()
        }
        return trace_of(**tables, **self.manifest)

    def columns(self) -> list[tuple[str, str]]:
        """Its tables' columns that have a value in any row."""
        return sorted(
            {(table, name) for table, rows in self.tables.items() for row in rows for name in row}
        )

    def __str__(self) -> str:
        return f"{self.rule.code} {self.what}"


def _read(told: dict[str, Any]) -> LeastFault:
    rule = type(by_code(told["rule"]))(**told.get("thresholds", {}))
    manifest = dict(told.get("manifest", {}))
    if messages := manifest.pop("messages", None):
        report = ReadReport(messages=tuple(LogMessage(**message) for message in messages))
        manifest["report"] = report
    return LeastFault(rule, told["what"], manifest, told["tables"])


LEAST_FAULTS = [_read(told) for told in json.loads(_FILE.read_text(encoding="utf-8"))]
