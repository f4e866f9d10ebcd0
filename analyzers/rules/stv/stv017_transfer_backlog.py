"""transfer-backlog: requests pile up on their way from prefill to decode, and do not get through.

## What it finds
In the logs of servers that prefill and decode apart: a queue between the two that holds at least
`min_reqs` requests in every report for `min_ns` and `min_reports`, and is no shorter at the end
than it was at the beginning. Each queue of a rank is one finding, and says where the requests are:

- `#bootstrap-req`, or `#prealloc-req` of a prefill server: prefill and decode have not found each
  other yet
- `#inflight-req`: the prompt is computed, and its KV has not arrived
- `#prealloc-req` of a decode server: no KV is free for the prompt
- `#transfer-req`: KV is reserved for the prompt, and it has not arrived
- `#retracted-req`: it was let in, and had to give its KV back

A transfer takes milliseconds to seconds, whatever the length of the log. `min_ns` is longer than
any transfer that succeeds, and `min_reports` excludes logs with only a few lines left.

## Why it hurts
The prompt is computed, and its first token is shown after the wait. The KV of a request in flight
is held on both sides and used on neither, so a backlog makes itself longer.

## Example
    #transfer-req stood at 40 or more for 25 reports (48.0 s), 96 at the end: KV is reserved on the
    decode server, and it has not arrived

## How to fix
A queue stands in front of what is too slow. In flight or in transfer: the network, its threads, or
a peer that is gone. Waiting for KV on the decode server: more of these, or fewer prefills. Waiting
for the handshake: the other side is full, or cannot be reached.

## References
SGLang issues 22877 (`#prealloc-req` of a new prefill server rises without end), 5450 (transfers
slow down under load) and 11809 (requests that are not bootstrapped pile up).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.known import CLOCK, any_row
from stepscope.ingest.times import FAR_NS, SECOND
from stepscope.ingest.trace import Trace

FIX = (
    "a queue stands in front of what is too slow: see the network and its threads for KV in "
    "flight, the room of the decode server for KV that is not reserved"
)
HANDSHAKE = "prefill and decode have not found each other"
WHERE = {
    "#bootstrap-req": HANDSHAKE,
    "#unbootstrapped-req": HANDSHAKE,
    "#inflight-req": "the prompts are computed, and their KV has not arrived",
    "#prealloc-req": "no KV is free for them on the decode server",
    "#transfer-req": "KV is reserved on the decode server, and theirs has not arrived",
    "#retracted-req": "they were let in, and had to give their KV back",
}
QUEUE = ("rank", "name")


@dataclass(frozen=True, slots=True)
class TransferBacklog:
    """A queue between prefill and decode held `min_reqs` for `min_ns` and did not get shorter."""

    code: ClassVar[str] = "STV017"
    name: ClassVar[str] = "transfer-backlog"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("counters", CLOCK)

    min_reqs: int = 8
    min_reports: int = 5
    min_ns: int = 10 * SECOND
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether any queue between prefill and decode is told of."""
        return any_row(_queues(trace))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank and queue, placed at its longest backlog."""
        is_deep = pl.col("value") >= self.min_reqs
        changes = (is_deep != is_deep.shift(1)).over(QUEUE).fill_null(value=True)
        lasted = pl.col("end_ns") - pl.col("ts_ns")
        longest = pl.all().exclude(QUEUE).sort_by("num_reports", -pl.col("ts_ns")).last()
        backlogs = (
            _queues(trace)
            .with_columns(run=changes.cum_sum().over(QUEUE), is_deep=is_deep)
            .filter("is_deep")
            .group_by(*QUEUE, "run")
            .agg(
                pl.col("ts_ns", "of_prefill").first(),
                end_ns=pl.col("ts_ns").last(),
                first=pl.col("value").first(),
                last=pl.col("value").last(),
                least=pl.col("value").min(),
                most=pl.col("value").max(),
                num_reports=pl.len(),
            )
            .filter(
                pl.col("num_reports") >= self.min_reports,
                lasted >= self.min_ns,
                pl.col("last") >= pl.col("first"),
            )
            .group_by(QUEUE)
            .agg(longest, count=pl.len())
            .sort(QUEUE)
        )
        return each(self, backlogs.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        lasted_ns, name = row["end_ns"] - row["ts_ns"], row["name"]
        of_handshake = name == "#prealloc-req" and row["of_prefill"]
        message = (
            f"{name} stood at {row['least']:,.0f} or more for "
            f"{times(row['num_reports'], 'report')} ({duration(lasted_ns)}), "
            f"{row['last']:,.0f} at the end: {HANDSHAKE if of_handshake else WHERE[name]}"
        )
        evidence: Evidence = {
            "queue": name,
            "reports": row["num_reports"],
            "lasted_ns": lasted_ns,
            "at the beginning": int(row["first"]),
            "at the end": int(row["last"]),
            "at most": int(row["most"]),
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _queues(trace: Trace) -> pl.LazyFrame:
    """Each report of a queue in order, and whether it is of a server that prefills."""
    told = (
        trace.counters.filter(
            pl.col("name").is_in(list(WHERE)),
            pl.col("ts_ns").is_not_null(),
            pl.col("value").is_finite(),
        )
        .with_columns(pl.col("ts_ns").clip(-FAR_NS, FAR_NS))
        .group_by(*QUEUE, "ts_ns")
        .agg(pl.col("value").max())
    )
    of_prefill = (pl.col("name") == "#inflight-req").any().over("rank")
    return told.with_columns(of_prefill=of_prefill).sort(*QUEUE, "ts_ns")
