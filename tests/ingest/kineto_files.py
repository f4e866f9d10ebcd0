"""Chrome JSON files for tests, written to a folder and opened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stepscope.ingest.trace import Trace

Event = dict[str, Any]


def slice_(name: str, ts: float, dur: float, **fields: Any) -> Event:
    """A complete event on thread 1 of process 1, times in microseconds."""
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": 1} | fields


def open_bytes(folder: Path, content: bytes, name: str = "trace.json") -> Trace:
    """Write a file and open it."""
    file = folder / name
    file.write_bytes(content)
    return Trace.open(file)


def open_events(folder: Path, *events: Event, **top: Any) -> Trace:
    """Write an object with `traceEvents`, and what else stands beside them, and open it."""
    return open_bytes(folder, json.dumps({**top, "traceEvents": events}).encode())


def rows(trace: Trace, table: str, *columns: str) -> list[Any]:
    """Rows of a table as tuples, or as values for one column."""
    found = trace.table(table).select(columns).collect().rows()
    return [row[0] for row in found] if len(columns) == 1 else found


def num_accounted(trace: Trace) -> int:
    """Events read or skipped, according to the report."""
    report = trace.manifest.report
    assert report is not None
    return sum(report.read.values()) + sum(report.skipped.values())


def one_event(file: Path, name: str) -> Path:
    """A file of one event of that name."""
    events = str([slice_(name, 1, 2)]).replace("'", '"')
    file.write_text(f'{{"schemaVersion": 1, "traceEvents": {events}}}')
    return file
