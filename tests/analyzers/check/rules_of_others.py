"""A rule of another package, as it would be installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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
