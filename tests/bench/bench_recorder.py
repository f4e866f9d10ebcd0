"""What a recorded row and a span cost the engine's thread, and what follows the recording.

`ns` is the median of 15 runs of 20,000 calls, in CPU time of the recording thread, which other
programs disturb least; the loop around the calls is taken off, the clock call in them is not.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from stepscope.ingest.manifest import Writer
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording.compaction import compact_writer
from stepscope.ingest.recording.forms.rows import Row
from stepscope.ingest.trace import Trace

NUM_CALLS = 20_000
NUM_RUNS = 15
NUM_ROWS = 500_000
Calls = Callable[[Recorder], None]


def measure() -> list[dict[str, Any]]:
    """Return one row per thing measured: what, how many nanoseconds, over the clock call alone."""
    with tempfile.TemporaryDirectory() as folder:
        with Recorder(Path(folder) / "rows.trace", producer="bench") as rec:
            rows = [{"what": what, "ns": round(_cost_ns(calls, rec))} for what, calls in CALLS]
        return rows + _afterwards(Path(folder) / "much.trace")


def _cost_ns(calls: Calls, rec: Recorder) -> float:
    empty = min(_timed_ns(_nothing, rec) for _ in range(NUM_RUNS))
    return statistics.median(_timed_ns(calls, rec) for _ in range(NUM_RUNS)) - empty


def _timed_ns(calls: Calls, rec: Recorder) -> float:
    began = time.thread_time_ns()
    calls(rec)
    return (time.thread_time_ns() - began) / NUM_CALLS


def _nothing(_: Recorder) -> None:
    for _row in range(NUM_CALLS):
        pass


def _clock(rec: Recorder) -> None:
    now_ns = rec.now_ns
    for _row in range(NUM_CALLS):
        now_ns()


def _task_edge(rec: Recorder) -> None:
    record, now_ns = rec.task_edges, rec.now_ns
    for row in range(NUM_CALLS):
        record(row, now_ns(), 4, 5)


def _counter(rec: Recorder) -> None:
    record, now_ns = rec.counters, rec.now_ns
    for row in range(NUM_CALLS):
        record(row, now_ns(), "engine", "waiting", None, 3.0)


def _counter_by_keyword(rec: Recorder) -> None:
    record, now_ns = rec.counters, rec.now_ns
    for row in range(NUM_CALLS):
        record(step=row, ts_ns=now_ns(), name="waiting", value=3.0)


def _lifecycle(rec: Recorder) -> None:
    record, now_ns = rec.lifecycle, rec.now_ns
    for row in range(NUM_CALLS):
        record(step=row, ts_ns=now_ns(), request="request 7", event="admit")


def _batch_row(rec: Recorder) -> None:
    record, now_ns = rec.batch_rows, rec.now_ns
    for row in range(NUM_CALLS):
        record(row, now_ns(), 3, "request 7", "decode", None, 1, 96)


@cache
def _narrow(rec: Recorder) -> Row:
    names = ("step", "ts_ns", "row", "request", "phase", "num_tokens", "num_computed")
    return rec.narrow("batch_rows", *names)


def _narrow_batch_row(rec: Recorder) -> None:
    record, now_ns = _narrow(rec), rec.now_ns
    for row in range(NUM_CALLS):
        record(row, now_ns(), 3, "request 7", "decode", 1, 96)


def _step(rec: Recorder) -> None:
    record, now_ns = rec.steps, rec.now_ns
    for row in range(NUM_CALLS):
        record(row, now_ns(), 9, "mixed", 1, 64, 512, 64, 8192, 0, 17, 65, 100, 4096)


def _span_row(rec: Recorder) -> None:
    record, now_ns = rec.spans, rec.now_ns
    for row in range(NUM_CALLS):
        start_ns = now_ns()
        record(row, start_ns, None, "engine", "schedule", None, "slice", now_ns() - start_ns)


def _span(rec: Recorder) -> None:
    span = rec.span
    for _row in range(NUM_CALLS):
        with span("schedule"):
            pass


CALLS: tuple[tuple[str, Calls], ...] = (
    ("clock call", _clock),
    ("row of task_edges: 4 of 5 columns", _task_edge),
    ("row of counters: 6 of 6 columns, 3 texts", _counter),
    ("the same, 4 by keyword", _counter_by_keyword),
    ("row of lifecycle: 4 of 12 columns, by keyword", _lifecycle),
    ("row of batch_rows: 7 of 14 columns", _batch_row),
    ("the same, by a narrow function", _narrow_batch_row),
    ("row of steps: 14 of 18 columns", _step),
    ("row of spans, two clock calls", _span_row),
    ("with rec.span(...), two clock calls", _span),
)


def _afterwards(path: Path) -> list[dict[str, Any]]:
    """Measure what the other process does with rows, and what opening does with a journal."""
    rec = Recorder(path, producer="bench")
    for row in range(NUM_ROWS):
        rec.batch_rows(row, row * 1_000, row % 64, f"request {row % 512}", "decode", 5, 1, row)
    rec._journal.stop()
    began = time.perf_counter_ns()
    Trace.open(path).batch_rows.collect()
    opened = time.perf_counter_ns()
    rec._background.finish()
    rec._compactor.finish()
    compacting = time.perf_counter_ns()
    compact_writer(path, Writer())
    compacted = time.perf_counter_ns()
    rec.close()
    return [
        {"what": "a row opened from the journal", "ns": round((opened - began) / NUM_ROWS)},
        {"what": "a row compacted", "ns": round((compacted - compacting) / NUM_ROWS)},
    ]


def main() -> None:
    """Print the table, or JSON with `--json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    rows = measure()
    if parser.parse_args().json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        print(f"{row['what']:<48} {row['ns']:>6} ns")


if __name__ == "__main__":
    main()
