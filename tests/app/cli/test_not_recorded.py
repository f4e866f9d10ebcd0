"""Without a table or a column every figure is equal, null, or said to be partial.

The cases are made of the schema: each table is taken out of a recording, and each of its columns is
set to null in every row. What is printed then is compared with the full recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import isclose
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.engine.runs.scenario import Options
from stepscope.engine.scenarios import scenario
from stepscope.ingest.schema import BY_NAME, TABLES
from stepscope.ingest.trace import Trace
from tests.app.cli.figures import Figures, figures
from tests.tiers import slow

Case = tuple[str, str | None]
CASES: list[Case] = [
    (table.name, column) for table in TABLES for column in (None, *table.names) if column != "rank"
]
"""Each table as a whole, and each of its columns; no row is recorded without a rank."""
ABOUT_ROWS = ("TRC006", "TRC007")
"""Rules that report rows which are missing or contradict each other."""
NOT_RECORDED = ("unknown", "waiting", "head", "not recorded", "not known", "no row", "(none)")
"""What a figure is called, or says, that is of what was not recorded."""


def without(trace: Trace, table: str, column: str | None) -> Trace:
    """The trace without a table, as if it was never recorded, or with null in all of a column."""
    if column is None:
        left = {name: told for name, told in trace.manifest.tables.items() if name != table}
        frames = {each.name: trace.table(each.name) for each in TABLES if each.name != table}
        return Trace(frames, replace(trace.manifest, tables=left), trace.name)
    rows = trace.table(table)
    null = pl.lit(None, rows.collect_schema()[column]).alias(column)
    return trace.replacing({table: rows.with_columns(null)}, trace.manifest)


@dataclass(frozen=True)
class Recorded:
    """A recording, its figures, and whose waits are asked about."""

    trace: Trace
    subjects: tuple[str, ...]
    figures: Figures

    def has(self, table: str, column: str | None) -> bool:
        """Whether there is anything to take out."""
        rows = self.trace.table(table)
        return self.trace.has(table) if column is None else (
            rows.select(pl.col(column).is_not_null().any()).collect().item()
        )  # fmt: skip


def false_figures(recorded: Recorded, case: Case) -> Iterator[str]:
    """What is said without a table or column that is neither so, nor null, nor said partial."""
    found = figures(without(recorded.trace, *case), recorded.trace, recorded.subjects)
    full = recorded.figures
    for name, value in found.values.items():
        was, command = full.values.get(name), name.partition(".")[0]
        if value in (None, "", ()) or is_same(was, value) or says_so(name, value):
            continue
        if command == "check":
            yield from false_findings(name.partition(".")[2], was, value)
        elif not found.said.get(command, set()) - full.said.get(command, set()):
            yield f"{name}: {was} -> {value}"


def false_findings(code: str, was: int | None, num: int) -> Iterator[str]:
    """A rule reports what it did not, or is clean where it was not."""
    if num and not was and code not in ABOUT_ROWS:
        yield f"{code} reports {num} and did not"
    if not num and was != 0:
        yield f"{code} is clean and was {was or 'not applicable'}"


def is_same(was: Any, value: Any) -> bool:
    if isinstance(was, float) and isinstance(value, float):
        return isclose(was, value, rel_tol=1e-9)
    says_less = isinstance(was, str) and isinstance(value, str) and was.startswith(value)
    return says_less or bool(was == value)


def says_so(name: str, value: Any) -> bool:
    """Whether the figure itself says that something was not recorded."""
    return any(word in f"{name} {value}" for word in NOT_RECORDED)
