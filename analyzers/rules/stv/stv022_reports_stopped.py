"""reports-stopped: an engine with requests stops reporting, and its log goes on.

## What it finds
The last report of a log says that requests run or wait, and the log goes on for at least `min_ns`
and `min_periods` times the usual distance of reports; where the lines that follow have no time,
for `min_lines` lines. vLLM reports every few seconds while any request runs, and once more when the
last one has ended. SGLang reports batches, so that only a queue counts that is never served.

`min_ns` is six report intervals of vLLM (10 s each): other lines, such as those of requests,
continue for a while after the last report of a healthy engine. An engine that reports less often is
judged by `min_periods`.

A server that was stopped is not reported, nor is one with a fatal error in its log (STV023).

## Why it hurts
The front end answers health checks, so that a supervisor restarts nothing, and the scheduler is
stuck in a step. Every request waits until its client gives up.

## Example
    no report follows for 782.0 s (13 other lines): the last one says that 24 requests run and 29
    wait

## How to fix
Dump the stacks of the engine's processes on all ranks (`py-spy dump --pid PID`). Let health checks
ask the engine for a token, not only the front end for an answer.

## References
vLLM issue 55427, SGLang issue 22518 (only /health in the log, for minutes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.known import CLOCK, any_row
from stepscope.analyzers.views.loads import loads
from stepscope.ingest.manifest import LogMessage
from stepscope.ingest.times import SECOND
from stepscope.ingest.trace import Trace

FIX = (
    "dump the stacks of the engine's processes on all ranks (py-spy dump --pid PID), and let "
    "health checks ask the engine for a token"
)


@dataclass(frozen=True, slots=True)
class ReportsStopped:
    """The log went on for `min_ns` after the last report, which says that requests were there."""

    code: ClassVar[str] = "STV022"
    name: ClassVar[str] = "reports-stopped"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = (CLOCK,)

    min_ns: int = 60 * SECOND
    min_periods: float = 6.0
    min_lines: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether a log's reports say how many requests run or wait, and how it ends."""
        report = trace.manifest.report
        return report is not None and any_row(_reports(trace))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding, at the last report of the log."""
        report = trace.manifest.report
        messages = () if report is None else report.messages
        last = next((message for message in messages if message.kind == "end"), None)
        if last is None or any(message.kind in ("fatal", "shutdown") for message in messages):
            return []
        rows = _reports(trace).sort("ts_ns", "rank").collect()
        row = rows.tail(1).to_dicts()[0]
        distance = pl.col("ts_ns").unique().sort().diff().median()
        usual_ns = int(rows.select(distance.fill_null(0)).item())
        silent_ns = None if last.ts_ns is None else last.ts_ns - row["ts_ns"]
        if not self._has_work(row) or not self._is_silent(last, silent_ns, usual_ns):
            return []
        return [self._finding(row, last, silent_ns)]

    def _has_work(self, row: Mapping[str, Any]) -> bool:
        """Whether the engine had to report again: SGLang's batches are not all reported."""
        of_step = row["step"] is not None
        return (row["num_waiting"] or 0) > 0 or (not of_step and (row["num_running"] or 0) > 0)

    def _is_silent(self, last: LogMessage, silent_ns: int | None, usual_ns: int) -> bool:
        if silent_ns is None:
            return last.num_after >= self.min_lines
        return silent_ns >= max(self.min_ns, self.min_periods * usual_ns)

    def _finding(self, row: Mapping[str, Any], last: LogMessage, silent_ns: int | None) -> Finding:
        lines = times(last.num_after, "other line")
        silence = lines if silent_ns is None else f"{duration(silent_ns)} ({lines})"
        counts = [
            f"{times(int(row['num_running']), 'request')} run" if row["num_running"] else "",
            f"{int(row['num_waiting']):,} wait" if row["num_waiting"] else "",
        ]
        present = " and ".join(count for count in counts if count)
        message = f"no report follows for {silence}: the last one says that {present}"
        evidence: Evidence = {
            "silent_ns": silent_ns,
            "lines after it": last.num_after,
            "running": None if row["num_running"] is None else int(row["num_running"]),
            "waiting": None if row["num_waiting"] is None else int(row["num_waiting"]),
            "last line": last.text,
        }
        end_ns = row["ts_ns"] if last.ts_ns is None else last.ts_ns
        return finding(self, message, FIX, at={**row, "end_ns": end_ns}, evidence=evidence)


def _reports(trace: Trace) -> pl.LazyFrame:
    known = pl.any_horizontal(pl.col("num_running", "num_waiting").is_not_null())
    return loads(trace).filter(known, ~pl.col("is_recorded"))
