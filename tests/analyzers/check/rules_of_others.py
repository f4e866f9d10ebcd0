"""A rule of another package, as it would be installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stepscope.analyzers.check.registry import of_others
from stepscope.ingest.entry_points import tell_once
from tests.packages import write_package

RULE = '''"""QUE001: steps are slow.

## What it finds
Steps of a second and more.
"""

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Severity
from stepscope.analyzers.findings.rule import finding


@dataclass(frozen=True, slots=True)
class SlowStep:
    code: ClassVar[str] = "QUE001"
    name: ClassVar[str] = "slow-step"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("steps.dur_ns",)

    min_dur_ns: int = 1_000_000_000

    def check(self, trace):
        slow = trace.steps.filter(pl.col("dur_ns") >= self.min_dur_ns)
        rows = slow.collect().iter_rows(named=True)
        return [finding(self, f"step {row['step']} is slow", "be quick", at=row) for row in rows]
'''
Install = Callable[..., Path]


@contextmanager
def installing(folder: Path) -> Iterator[Install]:
    """Yield what installs a package with a module of rules into a folder, on the path meanwhile."""
    made = []

    def install(package: str, source: str, *points: str) -> Path:
        points = points or (f"one = {package.replace('-', '_')}:SlowStep",)
        made.append(write_package(folder, package, source, "stepscope.rules", *points))
        of_others.cache_clear()
        return folder

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.syspath_prepend(str(folder))
        try:
            yield install
        finally:
            of_others.cache_clear()
            tell_once.cache_clear()
            for module in made:
                sys.modules.pop(module, None)
