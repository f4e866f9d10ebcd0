"""inferred: kinds, counts or identities were inferred from tags or logs, not recorded.

## What it finds
Tables that the manifest calls inferred, or ordered (their times are in the right order, and their
distance says nothing), and steps whose kind and counts were read from a profiler
tag, an annotation or a log line instead of being written by the engine.

## Why it hurts
It does not; it is worth knowing. A tag says what its author thought the batch was. A tag such as
`prefill[bs=4]` says nothing about which requests were in it, so rules that need identities answer
*not applicable*, and counts are only as good as the tag.

## Example
    kind and counts of 133 steps were inferred from: vllm execute_context tag

## How to fix
Nothing is broken. To know rather than infer, record with the stepscope recorder, or attach it to
the engine.

## References
vLLM's and SGLang's `record_function` step tags; `torch.profiler` (kineto) traces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from stepscope.analyzers.finding import Evidence, Finding, Severity
from stepscope.analyzers.rule import finding
from stepscope.analyzers.wording import times

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

FIX = "nothing is broken; to know rather than infer, record with the stepscope recorder"


@dataclass(frozen=True, slots=True)
class Inferred:
    """Something in the trace was inferred, not recorded."""

    code: ClassVar[str] = "TRC003"
    name: ClassVar[str] = "inferred"
    severity: ClassVar[Severity] = Severity.INFO
    needs: ClassVar[tuple[str, ...]] = ()

    def check(self, trace: Trace) -> list[Finding]:
        """One finding for the inferred steps of each rank, one for all other inferred tables."""
        return self._steps(trace) + self._tables(trace)

    def _steps(self, trace: Trace) -> list[Finding]:
        inferred = trace.steps.filter(pl.col("inferred").is_not_null())
        sources = inferred.group_by("rank", "inferred").agg(
            pl.len(), pl.col("step", "ts_ns").min(), end_ns=pl.col("ts_ns").max()
        )
        rows = sources.sort("rank", "inferred").collect().iter_rows(named=True)
        return [self._of_source(row) for row in rows]

    def _of_source(self, row: Mapping[str, Any]) -> Finding:
        num_steps, source = row["len"], row["inferred"]
        message = f"kind and counts of {times(num_steps, 'step')} were inferred from: {source}"
        evidence: Evidence = {"steps": num_steps, "inferred from": source}
        return finding(self, message, FIX, at=row, evidence=evidence, count=num_steps)

    def _tables(self, trace: Trace) -> list[Finding]:
        told = trace.manifest.tables.items()
        states = ("inferred", "ordered")
        names = sorted(name for name, state in told if state in states and name != "steps")
        report = trace.manifest.report
        evidence: Evidence = {**(report.inferred if report else {})}
        message = f"inferred, not recorded: {', '.join(names)}"
        return [finding(self, message, FIX, evidence=evidence, count=len(names))] if names else []
