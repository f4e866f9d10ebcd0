"""reports-stopped: an engine with requests stops reporting, and its log goes on.

## What it finds
The last report of a log says that requests run or wait, and the log goes on for at least `min_ns`
and `min_periods` times the usual distance of reports; where the lines that follow have no time,
for `min_lines` lines. vLLM reports every few seconds while any request runs, and once more when the
last one has ended. SGLang reports batches, so that only a queue counts that is never served.

`min_ns` is six report intervals of vLLM (10 s each): other lines, such as those of requests,
continue for a while after the last report of a healthy engine. An engine that reports less often is
judged by `min_periods`.

Of several engines in a log each has to report as long as any does. An engine whose last report says
that nothing runs has drained.

If another server starts after the last report, the log of the first one ends there.

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

import re
from collections.abc import Mapping, Sequence
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

_LABEL = re.compile(r"(?:[A-Z]{2})?\d{1,6}")
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
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether a log's reports say how many requests run or wait, and how it ends."""
        report = trace.manifest.report
        return report is not None and any_row(_reports(trace))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding at the last report of the log, and one per rank that stopped before."""
        report = trace.manifest.report
        messages = () if report is None else report.messages
        if any(message.kind in ("fatal", "shutdown") for message in messages):
            return []
        rows = _reports(trace).sort("ts_ns", "rank").collect()
        ends = [message for message in messages if message.kind == "end"]
        of_log = [found for last in ends if (found := self._at_the_end(rows, last))]
        starts = [message.ts_ns for message in messages if message.kind == "start"]
        return [*self._of_ranks(trace, rows, starts)[: self.limit], *of_log]

    def _at_the_end(self, rows: pl.DataFrame, last: LogMessage) -> Finding | None:
        """A finding where no engine reports any more, and the log goes on."""
        usual_ns = _usual_ns(rows)
        latest_ns = rows["ts_ns"][-1]
        of_ranks = rows.group_by("rank", maintain_order=True).last().sort("ts_ns", "rank")
        present = of_ranks.filter(pl.col("ts_ns") >= latest_ns - usual_ns).to_dicts()
        row = next((row for row in reversed(present) if self._has_work(row)), None)
        if row is None:
            return None
        silent_ns = None if last.ts_ns is None else last.ts_ns - row["ts_ns"]
        is_silent = self._is_silent(last, silent_ns, usual_ns)
        return self._finding(row, last, silent_ns) if is_silent else None

    def _of_ranks(
        self, trace: Trace, rows: pl.DataFrame, starts: Sequence[int | None]
    ) -> list[Finding]:
        """A finding for each rank that stops while other ranks of its server report on."""
        servers = _servers(trace)
        found = []
        for (rank,), own in rows.group_by("rank", maintain_order=True):
            row = own.tail(1).to_dicts()[0]
            same = [other for other, server in servers.items() if server == servers.get(int(rank))]
            later = rows.filter(pl.col("rank").is_in(same), pl.col("ts_ns") > row["ts_ns"])
            if later.is_empty() or not self._has_work(row):
                continue
            end_ns = later["ts_ns"][-1]
            is_long = end_ns - row["ts_ns"] >= max(self.min_ns, self.min_periods * _usual_ns(own))
            is_restart = any(at is None or row["ts_ns"] < at <= end_ns for at in starts)
            if is_long and not is_restart:
                found.append(self._of_rank(row, later, end_ns))
        return found

    def _of_rank(self, row: Mapping[str, Any], later: pl.DataFrame, end_ns: int) -> Finding:
        others = sorted(later["rank"].unique())
        whose = f"rank {others[0]}" if len(others) == 1 else f"{len(others)} other ranks"
        message = (
            f"rank {row['rank']} reports nothing for {duration(end_ns - row['ts_ns'])}, in which "
            f"{times(later.height, 'report')} of {whose} came: its last one says that "
            f"{_present(row)}"
        )
        evidence: Evidence = {
            "silent_ns": end_ns - row["ts_ns"],
            "reports of others": later.height,
            "running": None if row["num_running"] is None else int(row["num_running"]),
            "waiting": None if row["num_waiting"] is None else int(row["num_waiting"]),
        }
        return finding(self, message, FIX, at={**row, "end_ns": end_ns}, evidence=evidence)

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
        message = f"no report follows for {silence}: the last one says that {_present(row)}"
        evidence: Evidence = {
            "silent_ns": silent_ns,
            "lines after it": last.num_after,
            "running": None if row["num_running"] is None else int(row["num_running"]),
            "waiting": None if row["num_waiting"] is None else int(row["num_waiting"]),
            "last line": last.text,
        }
        end_ns = row["ts_ns"] if last.ts_ns is None else last.ts_ns
        return finding(self, message, FIX, at={**row, "end_ns": end_ns}, evidence=evidence)


def _present(row: Mapping[str, Any]) -> str:
    counts = [
        f"{times(int(row['num_running']), 'request')} run" if row["num_running"] else "",
        f"{int(row['num_waiting']):,} wait" if row["num_waiting"] else "",
    ]
    return " and ".join(count for count in counts if count)


def _usual_ns(reports: pl.DataFrame) -> int:
    distance = pl.col("ts_ns").unique().sort().diff().median()
    return int(reports.select(distance.fill_null(0)).item())


def _servers(trace: Trace) -> dict[int, tuple[str, str]]:
    """The server that each rank of a log belongs to: the engine's name, and who forwarded it."""
    sources = trace.manifest.config.get("sources")
    found = {}
    for rank, name in sources.items() if isinstance(sources, dict) else ():
        words = str(name).split(" ")
        origin = " ".join(word for word in words[1:] if not _LABEL.fullmatch(word))
        if str(rank).isdecimal():
            found[int(rank)] = words[0], origin
    return found


def _reports(trace: Trace) -> pl.LazyFrame:
    known = pl.any_horizontal(pl.col("num_running", "num_waiting").is_not_null())
    return loads(trace).filter(known, ~pl.col("is_recorded"))
