"""engine-died: the log says that the engine failed, with which error, and what was there before.

## What it finds
A fatal line of an engine: vLLM's `EngineCore encountered a fatal error` and `EngineDeadError`,
SGLang's `Scheduler hit an exception` and `memory leak detected!`, its health checks that fail three
times without a report in between, TensorRT-LLM's `Error in event loop`, `Hang detected` and an
abort of MPI, llama.cpp's failed assertions and its `failed to decode the batch` without a later
report, a CUDA or out-of-memory error, a watchdog timeout; and the `orch_error_code` with which the
core-group runtime gives up a run of which its log names no task (COR010 has those with tasks). The
message names the exception that ends the traceback, and the last report before it.

Errors that processes log while the server is being stopped are not reported, unless the line that
mentions the shutdown is itself fatal.

## Why it hurts
Every request that was there is lost, and clients get errors until a supervisor restarts the server.

## Example
    the engine died: AssertionError: assert request.num_output_placeholders >= 0; the last report,
    5.0 s before, says that 4 requests run, 2 wait and the KV cache is 93.0% full

## How to fix
Look the exception up in the engine's issues, by its text and the function that raised it. Record a
run that leads to it (`docs/attach.md`), so that each decision before the failure can be seen.

## References
vLLM issues 47900, 57562; SGLang issues 35270, 6888, 11970.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.loads import loads
from stepscope.ingest.manifest import LogMessage
from stepscope.ingest.trace import Trace

FIX = (
    "look the exception up in the engine's issues, by its text and the function that raised it, "
    "and record a run that leads to it"
)

WHAT = {
    "Hang detected": "hangs by its own account",
    "Health check failed": "hangs by its own account",
    "failed to decode": "failed, and no report follows",
    "error_code=": "failed by the runtime's own verdict",
}
"""Of lines by which an engine does not say that it died."""


@dataclass(frozen=True, slots=True)
class EngineDied:
    """The log of an engine has a fatal line."""

    code: ClassVar[str] = "STV023"
    name: ClassVar[str] = "engine-died"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ()

    def applies(self, trace: Trace) -> bool:
        """Tell whether the trace was read from a log, whose other lines were looked through."""
        report = trace.manifest.report
        sources = trace.manifest.config.get("sources")
        return report is not None and (isinstance(sources, dict) or bool(report.messages))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding, at the first fatal line."""
        report = trace.manifest.report
        messages = () if report is None else report.messages
        fatal = [message for message in messages if message.kind == "fatal"]
        return [self._finding(trace, fatal, messages)] if fatal else []

    def _finding(
        self, trace: Trace, fatal: Sequence[LogMessage], messages: Sequence[LogMessage]
    ) -> Finding:
        at_ns = next((message.ts_ns for message in fatal if message.ts_ns is not None), None)
        errors = [message.text for message in messages if message.kind == "exception"]
        cause = errors[0] if errors else fatal[0].text
        rank = next((message.rank for message in fatal if message.rank is not None), None)
        ranks = _ranks(trace)
        is_one = len(ranks) < 2  # of several engines, one has to be named
        row = _last_report(trace, at_ns, rank)
        who = "the engine" if is_one or rank is None else f"the engine of rank {rank}"
        whose = "" if is_one or rank is not None else f" (of rank {row.get('rank')})"
        later = [] if at_ns is None or rank is None else _ranks(trace, pl.col("ts_ns") > at_ns)
        others = ", ".join(str(other) for other in later if other != rank)
        goes_on = f"; of rank {others} reports go on" if others else ""
        message = f"{who} {_what(cause)}: {cause}{_before(row, at_ns, whose)}{goes_on}"
        evidence: Evidence = {
            "error": cause,
            "fatal line": fatal[0].text,
            "fatal lines": len(fatal),
            "last report_ns": row.get("ts_ns") if trace.manifest.clock.has_times else None,
            "running": _whole(row.get("num_running")),
            "waiting": _whole(row.get("num_waiting")),
            "used_share": row.get("kv_usage"),
        }
        place = {"rank": row.get("rank") if is_one else rank, "step": row.get("step")}
        ts_ns = at_ns if at_ns is not None else row.get("ts_ns")
        return finding(self, message, FIX, at={**place, "ts_ns": ts_ns}, evidence=evidence)


def _what(cause: str) -> str:
    return next((what for said, what in WHAT.items() if said in cause), "died")


def _ranks(trace: Trace, *conditions: pl.Expr) -> list[int]:
    found = loads(trace).filter(pl.col("rank").is_not_null(), *conditions).select("rank")
    return sorted(found.unique().collect()["rank"])


def _last_report(trace: Trace, at_ns: int | None, rank: int | None) -> Mapping[str, Any]:
    """What the engine reported last before a time."""
    reports = loads(trace).sort("ts_ns", "rank")
    reports = reports if rank is None else reports.filter(pl.col("rank") == rank)
    before = reports if at_ns is None else reports.filter(pl.col("ts_ns") <= at_ns)
    rows = before.tail(1).collect().to_dicts()
    return rows[0] if rows else {}


def _before(row: Mapping[str, Any], at_ns: int | None, whose: str) -> str:
    parts = [
        f"{times(int(row['num_running']), 'request')} run" if row.get("num_running") else "",
        f"{int(row['num_waiting']):,} wait" if row.get("num_waiting") else "",
        "" if row.get("kv_usage") is None else f"the KV cache is {row['kv_usage']:.1%} full",
    ]
    known = [part for part in parts if part]
    if not known:
        return ""
    shown = known[0] if len(known) == 1 else f"{', '.join(known[:-1])} and {known[-1]}"
    when = "" if at_ns is None else f", {duration(at_ns - row['ts_ns'])} before,"
    return f"; the last report{whose}{when} says that {shown}"


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
