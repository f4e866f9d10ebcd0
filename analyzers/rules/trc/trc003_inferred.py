"""inferred: kinds, counts or identities were inferred from tags or logs, not recorded.

## What it finds
Tables that the manifest calls inferred, or ordered (their times are in the right order, and their
distance says nothing), and steps that were read from a profiler tag, an annotation or a log line
instead of being written by the engine; and whether that told what kind they were and how many
requests and tokens were in them, or only when they ran.

## Why it hurts
It does not; it is worth knowing. A tag says what its author thought the batch was. A tag such as
`prefill[bs=4]` says nothing about which requests were in it, so rules that need identities answer
*not applicable*, and counts are only as good as the tag.

## Example
    kind and counts of 133 steps were inferred from: execute_context_R(T)_generation_R(T)
    times alone of 3 steps were inferred from: ProfilerStep#N, which tells neither kind nor counts

## How to fix
Nothing is broken. To know rather than infer, record with the stepscope recorder, or attach it to
the engine.

## References
vLLM's and SGLang's `record_function` step tags; `torch.profiler` (kineto) traces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import finding
from stepscope.analyzers.findings.wording import times
from stepscope.ingest.trace import Trace

COUNTS = ("num_prefill_reqs", "num_decode_reqs", "num_prefill_tokens", "num_decode_tokens")
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
        has_counts = pl.any_horizontal(pl.col(COUNTS).is_not_null())
        sources = inferred.group_by("rank", "inferred").agg(
            pl.len(),
            pl.col("step", "ts_ns").min(),
            end_ns=pl.col("ts_ns").max(),
            kind=pl.col("kind").is_not_null().sum(),
            counts=has_counts.sum(),
        )
        rows = sources.sort("rank", "inferred").collect().iter_rows(named=True)
        return [self._of_source(row) for row in rows]

    def _of_source(self, row: Mapping[str, Any]) -> Finding:
        num_steps, source = row["len"], row["inferred"]
        message = f"{_told(row)} were inferred from: {source}{_untold(row)}"
        evidence: Evidence = {
            "steps": num_steps,
            "steps of known kind": row["kind"],
            "steps with counts": row["counts"],
            "inferred from": source,
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=num_steps)

    def _tables(self, trace: Trace) -> list[Finding]:
        told = trace.manifest.tables.items()
        states = ("inferred", "ordered")
        names = sorted(name for name, state in told if state in states and name != "steps")
        report = trace.manifest.report
        evidence: Evidence = {**(report.inferred if report else {})}
        message = f"inferred, not recorded: {', '.join(names)}"
        return [finding(self, message, FIX, evidence=evidence, count=len(names))] if names else []


def _told(row: Mapping[str, Any]) -> str:
    """What was inferred, and of how many steps: less of some than of others is said as well."""
    known = {name: row[name] for name in ("kind", "counts") if row[name]}
    steps = times(row["len"], "step")
    if set(known.values()) <= {row["len"]}:
        return f"{' and '.join(known) or 'times alone'} of {steps}"
    return f"times of {steps}, " + " and ".join(f"{name} of {num:,}" for name, num in known.items())


def _untold(row: Mapping[str, Any]) -> str:
    missing = [name for name in ("kind", "counts") if not row[name]]
    if not missing:
        return ""
    tells = "tells neither" if len(missing) > 1 else "does not tell"
    return f", which {tells} {' nor '.join(missing)}"
