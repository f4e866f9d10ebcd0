"""slow-path-for-width: decode steps of a width ran on a path that costs more than another one.

## What it finds
For each code path (`executed_path`) and width (tokens of a decode-only step) with at least
`at_least` steps, the median duration. It is slow when another path of the same trace does as much
for less: a step of at least that width, or several narrower steps that make it up together. The
path has to cost `max_ratio` times as much. Each path and width is one finding, the costliest first.

Where the manifest declares the paths for decode (`declared_paths` in its config), a path that is
not among them is found as well: it is one for prompts, whatever it costs.

Context lengths differ from step to step and are not corrected for, which is what the ratio and the
median are for. Steps that were inferred from tags have no path, and are not judged. Nor are those
of SGLang's log, in which some forty decode batches have one line: how long each of them took is not
known.

## Why it hurts
A kernel that is made for large batches pays for its set-up and padding at every small one. Which
width it starts to pay at is measured once, on another model, and then stays in the code.

## Example
    grouped-gemm took 140.0 ms at width 4 in 52 steps, where per-token takes 88.0 ms: 2.7 s in all

## How to fix
Choose the path by a measured table of path and width, made for this model and device, and measure
again when either changes. Here, move the threshold beyond this width.

## References
The report on multiplexing an expert-parallel engine: grouped GEMM at 4 rows took 140 ms against 88
ms token by token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.batches import formed, has_every_step, num_rows, path_names
from stepscope.analyzers.views.declared import declared_paths
from stepscope.analyzers.views.known import CLOCK
from stepscope.ingest.trace import Trace

FIX = "choose the path by a measured table of path and width; move the threshold beyond this width"
CELL = ("rank", "executed_path", "width")


@dataclass(frozen=True, slots=True)
class SlowPathForWidth:
    """A path cost `max_ratio` times what another path of the trace takes for that width."""

    code: ClassVar[str] = "BAT011"
    name: ClassVar[str] = "slow-path-for-width"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = (
        "steps.executed_path",
        "steps.num_prefill_reqs",
        "steps.num_decode_reqs",
        "steps.dur_ns",
        CLOCK,
    )

    max_ratio: float = 1.3
    at_least: int = 3
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether every step is told of, so that each lasts for as long as it is told to."""
        return has_every_step(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per path and width, with the number of steps, the costliest first."""
        cells = self._cells(trace)
        slow = self._slow(cells)
        # What is slow by a comparison is told once, with the comparison.
        foreign = _undeclared(cells, trace).join(
            slow.select(CELL), on=CELL, how="anti", maintain_order="left"
        )
        return [
            *each(self, foreign.collect(), self._foreign, FIX, self.limit),
            *each(self, slow.collect(), self._finding, FIX, self.limit),
        ]

    def _slow(self, cells: pl.LazyFrame) -> pl.LazyFrame:
        other = cells.select(
            "rank", other_path="executed_path", other_width="width", other_ns="median_ns"
        )
        # Steps of the other path that are needed for as many rows, rounded up.
        num_steps = (pl.col("width") + pl.col("other_width") - 1) // pl.col("other_width")
        best = ("other_cost_ns", "other_width", "other_path", "num_other_steps")
        return (
            cells.join(other, on="rank", how="left")
            .filter(pl.col("executed_path") != pl.col("other_path"))
            .with_columns(num_other_steps=num_steps)
            .with_columns(other_cost_ns=pl.col("other_ns") * pl.col("num_other_steps"))
            .group_by(CELL)
            .agg(
                pl.col(best).sort_by(best).first(),
                pl.col("median_ns", "step", "ts_ns", "end_ns", "count").first(),
            )
            .with_columns(lost_ns=(pl.col("median_ns") - pl.col("other_cost_ns")) * pl.col("count"))
            .filter(pl.col("median_ns") > self.max_ratio * pl.col("other_cost_ns"))
            .sort(-pl.col("lost_ns"), *CELL)
        )

    def _cells(self, trace: Trace) -> pl.LazyFrame:
        first = ("ts_ns", "step", "end_ns")
        return (
            formed(trace)
            .filter(
                pl.col("executed_path").is_not_null(),
                pl.col("num_prefill_reqs") == 0,
                pl.col("num_decode_reqs") > 0,
                pl.col("dur_ns") > 0,
            )
            .group_by("rank", "executed_path", width=num_rows("decode"))
            .agg(
                pl.col(first).sort_by(first).first(),
                median_ns=(pl.col("end_ns") - pl.col("ts_ns")).median(),
                count=pl.len(),
            )
            .filter(pl.col("count") >= self.at_least)
        )

    def _foreign(self, row: Mapping[str, Any]) -> Finding:
        message = (
            f"{row['executed_path']} took {duration(row['median_ns'])} at width {row['width']} in "
            f"{times(row['count'], 'step')}, and only {row['declared']} is declared for decode"
        )
        evidence: Evidence = {
            "path": row["executed_path"],
            "width": row["width"],
            "median_ns": row["median_ns"],
            "declared": row["declared"],
            "steps": row["count"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        num_other, width = row["num_other_steps"], row["other_width"]
        many = f"{num_other} steps of width {width} on " if num_other > 1 else ""
        take = "take" if num_other > 1 else "takes"
        message = (
            f"{row['executed_path']} took {duration(row['median_ns'])} at width {row['width']} in "
            f"{times(row['count'], 'step')}, where {many}{row['other_path']} {take} "
            f"{duration(row['other_cost_ns'])}: {duration(row['lost_ns'])} in all"
        )
        evidence: Evidence = {
            "path": row["executed_path"],
            "width": row["width"],
            "median_ns": row["median_ns"],
            "other path": row["other_path"],
            "other width": width,
            "other steps": num_other,
            "other_ns": row["other_cost_ns"],
            "steps": row["count"],
            "lost_ns": row["lost_ns"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _undeclared(cells: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Cells of a path that is not declared for decode; none where none is declared."""
    declared = declared_paths(trace).filter(pl.col("phase") == "decode")["path"].unique().sort()
    known = pl.lit(declared.implode())
    return (
        cells.filter(pl.lit(declared.len() > 0))
        .with_columns(path=path_names(pl.col("executed_path")))
        .filter(pl.col("path").list.set_difference(known).list.len() > 0)
        .with_columns(declared=pl.lit(" or ".join(declared)))
        .sort(-pl.col("median_ns") * pl.col("count"), *CELL)
    )
