"""path-never-taken: a code path that is declared, or a width of one, was never reached.

## What it finds
Code paths that the manifest declares (`declared_paths` in its config: for prefill and for decode
the names of paths, or a map from names to the widths that each is for) and that no step with such
rows ran; and of the paths that did run, the declared widths that did not occur on them. Each path
is one finding. Without a declaration the rule says nothing.

## Why it hurts
It may not; it is worth knowing. A path that a load test never reaches is a path that production
reaches first. Often it cannot be reached at all: a condition before it takes every case.

## Example
    fused is declared for decode and was never run
    per-token is declared for decode and was never run at widths 6, 7

## How to fix
Let the test workload pass through every width, or force each path once by configuration. If a path
cannot be reached, remove it.

## References
The report on multiplexing an expert-parallel engine, where a fused path for 2 and 3 rows was
declared and a test of it passed without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.views.batches import formed, num_rows, path_names
from stepscope.analyzers.views.declared import declared_paths
from stepscope.analyzers.views.known import any_row
from stepscope.ingest.schema import PHASES
from stepscope.ingest.trace import Trace

FIX = "let the test workload pass through every width, or remove the path"
NAMED = 12


@dataclass(frozen=True, slots=True)
class PathNeverTaken:
    """A declared path, or a declared width of one, was never run."""

    code: ClassVar[str] = "BAT012"
    name: ClassVar[str] = "path-never-taken"
    severity: ClassVar[Severity] = Severity.INFO
    needs: ClassVar[tuple[str, ...]] = ("steps.executed_path",)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether any path is declared, and any batch ran."""
        ran = trace.steps.filter(pl.col("kind") != "idle", pl.col("executed_path").is_not_null())
        return not declared_paths(trace).is_empty() and any_row(ran)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per path, with the number of its widths that were never reached."""
        path = ["phase", "path"]
        ran = _ran(trace)
        missed = (
            declared_paths(trace)
            .lazy()
            .join(ran.select(path).unique(), on=path, how="left", coalesce=False)
            .join(ran.unique(), on=[*path, "width"], how="left", coalesce=False, suffix="_cell")
            .with_columns(was_run=pl.col("path_right").is_not_null())
            .filter(
                pl.col("path_cell").is_null(),
                ~pl.col("was_run") | pl.col("width").is_not_null(),
            )
            .group_by(path)
            .agg(pl.col("was_run").first(), pl.col("width").drop_nulls().sort(), count=pl.len())
            .with_columns(ts_ns=pl.lit(None, pl.Int64), end_ns=pl.lit(None, pl.Int64))
            .sort(path)
        )
        return each(self, missed.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        widths = [str(width) for width in row["width"]]
        listed = ", ".join(widths[:NAMED]) + (", ..." if len(widths) > NAMED else "")
        message = f"{row['path']} is declared for {row['phase']} and was never run"
        if row["was_run"]:
            message += f" at width{'s' if len(widths) > 1 else ''} {listed}"
        evidence: Evidence = {"path": row["path"], "phase": row["phase"], "widths": listed or None}
        return finding(self, message, FIX, evidence=evidence, count=row["count"])


def _ran(trace: Trace) -> pl.LazyFrame:
    """Which paths ran for rows of which phase, and how many there were: phase, path, width."""
    of_phase = [
        formed(trace)
        .filter(pl.col(f"num_{phase}_reqs") > 0)
        .select(
            phase=pl.lit(phase),
            path=path_names(pl.col("executed_path")),
            width=num_rows(phase),
        )
        for phase in PHASES
    ]
    return pl.concat(of_phase).explode("path").drop_nulls()
