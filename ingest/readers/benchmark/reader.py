"""Reader of results of serving benchmarks: when requests were sent, and what their clients saw.

With start times, a request arrives when it was sent, and its first token and end are as its client
measured them. Without start times, only durations are known: requests are in the order in which
they were sent, without a clock, and their latencies are counters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.ingest.errors import TraceError, TruncatedTrace
from stepscope.ingest.frames import Frame, polars_schema
from stepscope.ingest.limits import DEFAULTS, Limits, raised_by
from stepscope.ingest.manifest import ClockInfo, Manifest, ReadReport
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.benchmark.decode import (
    ITL,
    LATENCY,
    LENGTHS,
    TIMES,
    TTFT,
    Request,
    about,
    requests_of,
)
from stepscope.ingest.readers.encodings.inflate import blocks_of, whole_of
from stepscope.ingest.readers.requests.decode import request_name
from stepscope.ingest.readers.seam import OneFile
from stepscope.ingest.readers.text.json_records import DAMAGED, json_values
from stepscope.ingest.schema import COUNTERS, LIFECYCLE, OUTPUTS
from stepscope.ingest.times import SECOND

REQUESTS, RUNS = "requests", "results"
NO_DETAILS = "results without lists of requests"
NO_END = "requests without a recorded end"
SEVERAL_AT_ONCE = "requests that got several tokens at once: their tokens have no times"
FAILED_AT = "times of failures without a latency, taken from the last known time"
FROM_CLIENT = (
    "requests as their client saw them: they arrive when they were sent, and their latencies "
    "include the network; what the server did is in its log or in a recording"
)
NO_STARTS = (
    "start_times are not recorded: requests are in the order in which they were sent, and their "
    "latencies are in the counters; a newer vllm bench serve records start times"
)
SEVERAL_RUNS = "each result is a rank, with times from its first request on"
SAVE_DETAILS = (
    "run it again with --save-detailed (vllm bench serve) or --output-details (SGLang's "
    "bench_serving), or open the server's log of that time"
)
_BEGINS = re.compile(rb"\s*\{")
_DETAILS = re.compile(rb'"(?:%s)"\s*:\s*\[' % "|".join((*TIMES, *LENGTHS)).encode())
_TOTALS = re.compile(
    rb'"(?:total_input_tokens|total_output_tokens|request_throughput|mean_ttft_ms|request_rate'
    rb'|completed|itls|ttfts)"'
)
_BETWEEN_NS = 1_000
"""Without a clock: the distance between two requests, which is not a duration."""
Row = dict[str, Any]


@dataclass(slots=True)
class _Rows:
    """Rows of each table, and counts for the report."""

    lifecycle: list[Row] = field(default_factory=list)
    outputs: list[Row] = field(default_factory=list)
    counters: list[Row] = field(default_factory=list)
    read: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    inferred: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    """Failed requests by their error."""

    def __len__(self) -> int:
        return len(self.lifecycle) + len(self.outputs) + len(self.counters)


class BenchmarkReader(OneFile):
    """Reads the requests of results that list them."""

    name = (
        "result of a serving benchmark (vllm bench serve --save-detailed, SGLang's bench_serving)"
    )
    one_per_rank = False

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell an object with totals of a benchmark and lists of its requests."""
        begins = _BEGINS.match(head.removeprefix(b"\xef\xbb\xbf")) is not None
        return begins and bool(_DETAILS.search(head)) and bool(_TOTALS.search(head))

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read the results; raises `TraceError`."""
        blocks = blocks_of(path, progress, limits)
        content = whole_of(blocks, path, limits)
        rows, runs, ended = _Rows(), list[Row](), blocks.damage
        found: list[tuple[list[Request], Row]] = []
        for value in json_values(content.decode("utf-8-sig", "replace")):
            if value is DAMAGED:
                ended = ended or "cut off or damaged"
                break
            result = value if isinstance(value, dict) else {}
            if requests := requests_of(result, limits.rows, rows.skipped):
                found.append((requests, about(result)))
            else:
                rows.skipped[NO_DETAILS] += 1
        if not found:
            raise (TruncatedTrace if ended else TraceError)(
                "none of its results lists the requests" + (f": it is {ended}" if ended else ""),
                where=str(path), todo=SAVE_DETAILS,
            )  # fmt: skip
        has_starts = all(run.start_ns is not None for requests, _ in found for run in requests)
        for rank, (requests, run) in enumerate(found):
            prefix = f"run{rank + 1}-" if len(found) > 1 else ""
            if not _add(rows, rank, requests, run, prefix, limits, has_starts=has_starts):
                ended = ended or f"more than {limits.rows:,} rows ({raised_by('rows')})"
                break
            runs.append(run)
        return _tables(rows), _manifest(rows, runs, ended, has_starts=has_starts)


def _add(
    rows: _Rows, rank: int, requests: list[Request], run: Row, prefix: str, limits: Limits,
    *, has_starts: bool,
) -> bool:  # fmt: skip
    """Add the requests of a result; False if the limit of rows is reached."""
    rows.read[RUNS] += 1
    have_completed = _have_completed(requests, run)
    zero_ns = min((request.start_ns or 0 for request in requests), default=0)
    for number, request in enumerate(requests):
        num_rows = 4 + (len(request.gaps_ns or ()) if request.has_gap_per_token else 0)
        if len(rows) + num_rows > limits.rows:
            return False
        rows.read[REQUESTS] += 1
        rows.failures[request.error or ""] += request.error is not None
        name = f"{prefix}{request_name(number)}"
        row: Row = {"rank": rank, "request": name}
        if has_starts:
            sent_ns = (request.start_ns or 0) - zero_ns
            events = _events(request, sent_ns, rows, has_completed=have_completed)
            rows.lifecycle += (row | event for event in events)
            rows.outputs += (row | token for token in _tokens(request, sent_ns, rows))
            continue
        at_ns = len(rows.lifecycle) * _BETWEEN_NS
        arrives = {"event": "arrive", "ts_ns": at_ns, "prompt_len": request.prompt_len}
        rows.lifecycle.append(row | arrives)
        rows.counters += (
            {"rank": rank, "track": name, "ts_ns": at_ns, "name": what, "unit": "s", "value": value}
            for what, value in _durations(request)
        )
    return True


def _have_completed(requests: list[Request], run: Row) -> bool:
    """Tell whether the run counted every request that did not fail as completed."""
    completed = run.get("completed")
    num_without_failure = sum(request.error is None for request in requests)
    return isinstance(completed, int) and completed >= num_without_failure


def _events(request: Request, sent_ns: int, rows: _Rows, *, has_completed: bool) -> Iterator[Row]:
    """Yield the events of a request that was sent at `sent_ns`.

    A request that completed at an unknown time has a `finish` without a time.
    """
    yield {"event": "arrive", "ts_ns": sent_ns, "prompt_len": request.prompt_len}
    first_ns, took_ns = request.first_ns, request.took_ns
    if first_ns is not None and (took_ns is None or first_ns <= took_ns):
        yield {"event": "first-token", "ts_ns": sent_ns + first_ns, "num_generated": 1}
    if request.error is not None:
        rows.inferred[FAILED_AT] += took_ns is None
        yield {"event": "error", "ts_ns": sent_ns + (took_ns or first_ns or 0),
               "cause": request.error, "num_generated": request.num_tokens}  # fmt: skip
    elif took_ns is not None:
        yield {"event": "finish", "ts_ns": sent_ns + took_ns, "num_generated": request.num_tokens}
    else:
        rows.skipped[NO_END] += 1
        if has_completed:
            yield {"event": "finish", "num_generated": request.num_tokens}


def _tokens(request: Request, sent_ns: int, rows: _Rows) -> Iterator[Row]:
    """Yield the time of each token, if the client got them one by one."""
    if request.first_ns is None or request.gaps_ns is None:
        return
    if not request.has_gap_per_token:
        rows.skipped[SEVERAL_AT_ONCE] += bool(request.gaps_ns)
        return
    at_ns = sent_ns + request.first_ns
    for position, gap_ns in enumerate((0, *request.gaps_ns)):
        at_ns += gap_ns
        yield {"position": position, "ts_ns": at_ns}


def _durations(request: Request) -> Iterator[tuple[str, float]]:
    """Yield the latencies of a request without a start time: names and seconds."""
    gaps_ns = request.gaps_ns or ()
    mean_ns = sum(gaps_ns) / len(gaps_ns) if gaps_ns else None
    known = {TTFT: request.first_ns, ITL: mean_ns, LATENCY: request.took_ns}
    for name, ns in known.items():
        if ns is not None:
            yield name, ns / SECOND


def _tables(rows: _Rows) -> dict[str, Frame]:
    listed = {LIFECYCLE: rows.lifecycle, OUTPUTS: rows.outputs, COUNTERS: rows.counters}
    return {
        table.name: pl.DataFrame(found, schema=polars_schema(table)).sort(
            "ts_ns", maintain_order=True, nulls_last=True
        )
        for table, found in listed.items()
        if found
    }


def _manifest(rows: _Rows, runs: list[Row], ended: str | None, *, has_starts: bool) -> Manifest:
    notes = [f"{ended}; all requests before that are kept"] if ended else []
    notes.append(FROM_CLIENT if has_starts else NO_STARTS)
    if num_failed := rows.failures.total():
        ((cause, num_of_cause),) = rows.failures.most_common(1)
        notes.append(
            f"{num_failed:,} of {rows.read[REQUESTS]:,} requests failed, {num_of_cause:,} of them "
            f"with: {cause}"
        )
    notes += [SEVERAL_RUNS] if len(runs) > 1 else []
    told = "partial" if ended else "inferred"
    names = [name for name, found in (("lifecycle", rows.lifecycle), ("outputs", rows.outputs),
                                      ("counters", rows.counters)) if found]  # fmt: skip
    return Manifest(
        producer="serving benchmark",
        clock=ClockInfo("profiler" if has_starts else "none"),
        ranks=tuple(range(max(len(runs), 1))),
        config={"benchmarks": runs},
        tables=dict.fromkeys(names, told if has_starts else "ordered"),
        closed=ended is None,
        report=ReadReport(
            read=dict(+rows.read),
            skipped=dict(+rows.skipped),
            inferred=dict(+rows.inferred),
            notes=tuple(notes),
        ),
    )
