"""Laying out 1e7 rows of each kind of lane, a window of 64 of its lanes, and a span's side pane.

A trace has the tables of one kind, and only that kind is laid out. `requests` is the yardstick: a
lane for each of 50,000 requests, a span for each batch row. `spans` are those that were made of the
rows. A window is the whole trace, a tenth of it, and so on; `pan_ms` is a tenth of the trace moved
on by a tenth of itself. Each is the median of queries at different places. `click_ms` is the side
pane of the first span that is selected, `clicks_ms` the median of those after it. Memory is the
most that the process had more than before it began; each row is measured in two processes of their
own, of which the second maps the index that the first one kept. `--lane NAME` measures one kind,
`--rows N` fewer rows.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stepscope.app.present.details import span_blocks
from stepscope.app.text_table import print_table
from stepscope.app.timeline import SpanView, Timeline
from stepscope.app.timeline.lanes import sections
from stepscope.ingest.trace import Trace
from tests.bench import peak_gb
from tests.bench.bench_timeline import NUM_LANES, NUM_PLACES, WIDTH, ZOOMS, ms
from tests.bench.bench_timeline.lane_rows import KINDS, NUM_RANKS, write_rows

ROOT = Path(__file__).resolve().parents[3]
NUM_ROWS = 10_000_000
NUM_CLICKS = 5


def measure(lanes: Sequence[str] = (*KINDS,), num_rows: int = NUM_ROWS) -> list[dict[str, Any]]:
    """Return one row per kind of lane: seconds, GB, ms of queries and of the side pane."""
    (ROOT / "out").mkdir(exist_ok=True)
    return [_measured(lane, num_rows) for lane in lanes]


def _measured(lane: str, num_rows: int) -> dict[str, Any]:
    section, make = KINDS[lane]
    with tempfile.TemporaryDirectory(dir=ROOT / "out") as folder:
        path = Path(folder) / "rows.trace"
        write_rows(path, make(num_rows), NUM_RANKS if lane == "collectives" else 1)
        kept = os.environ | {"STEPSCOPE_CACHE": str(Path(folder) / "cache")}
        command = [sys.executable, "-m", __spec__.name, "--one", section, str(path)]
        first, again = (
            json.loads(subprocess.run(command, check=True, stdout=-1, env=kept, cwd=ROOT).stdout)
            for _ in range(2)
        )
    return {
        "lane": lane, "rows": num_rows, "lanes": first["lanes"], "spans": first["spans"],
        "build_s": first["s"], "cpu_s": first["cpu_s"], "build_gb": first["gb"],
        "again_s": again["s"], "again_gb": again["gb"],
    } | {name: again[name] for name in again if name.endswith("_ms")}  # fmt: skip


def measure_one(section: str, path: str) -> dict[str, Any]:
    """Measure what a process needs until one section is laid out, then its windows and clicks."""
    sections.SECTIONS = (section,)  # type: ignore[assignment]  # what else the rows are is not it
    trace = Trace.open(path)
    before, began, cpu_began = peak_gb(), time.perf_counter(), time.process_time()
    timeline = Timeline.of(trace)
    took_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
    rise_gb = peak_gb() - before
    own = [lane.id for lane in timeline.lanes if lane.kind != "counter"]
    zooms = {f"1/{zoom}_ms": _query_ms(timeline, own, zoom) for zoom in ZOOMS}
    pan_ms = _query_ms(timeline, own, 10, moved=0.1)
    first, *others = _clicks_ms(timeline, trace, own)
    return {
        "lanes": len(own), "spans": len(timeline._layout.sections[0].index),
        "s": took_s, "cpu_s": cpu_s, "gb": rise_gb, **zooms, "pan_ms": pan_ms,
        "click_ms": first, "clicks_ms": statistics.median(others),
    }  # fmt: skip


def _query_ms(timeline: Timeline, lanes: list[int], zoom: int, moved: float = 0) -> float:
    """Return the median time of a window of some lanes, `moved` on by a part of itself."""
    first, last = timeline.bounds
    width_ns = (last - first) // zoom
    starts = np.linspace(first, last - width_ns, NUM_PLACES, dtype=np.int64).tolist()
    some = lanes[len(lanes) // 2 :][:NUM_LANES] if len(lanes) > 2 * NUM_LANES else lanes[:NUM_LANES]

    def query(start: int) -> object:
        return timeline.query(start, start + width_ns, WIDTH, some)

    took = []
    for start in starts:
        if moved:
            query(start)
        shifted = start + int(width_ns * moved)
        took.append(ms(lambda start=shifted: query(start)))  # type: ignore[misc]
    return statistics.median(took)


def _clicks_ms(timeline: Timeline, trace: Trace, lanes: list[int]) -> list[float]:
    """Return how long the side pane of some spans takes, those of different lanes in turn."""
    return [ms(_pane(span, timeline, trace)) for span in _some_spans(timeline, lanes)]


def _some_spans(timeline: Timeline, lanes: list[int]) -> Iterator[SpanView]:
    first, last = timeline.bounds
    num = 0
    for at in np.linspace(0, len(lanes) - 1, 4 * NUM_CLICKS, dtype=int).tolist():
        middle = first + (last - first) * (1 + at % 7) // 9
        span = timeline.next_span(lanes[at], middle) or timeline.previous_span(lanes[at], last)
        if span is not None and num < NUM_CLICKS:
            num += 1
            yield span


def _pane(span: SpanView, timeline: Timeline, trace: Trace) -> Callable[[], object]:
    return lambda: [*span_blocks(span, timeline, trace)]


def main() -> None:
    """Measure what the command line names, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lane", action="append", choices=[*KINDS], help="only this kind")
    parser.add_argument("--rows", type=int, default=NUM_ROWS, help="rows of each kind")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure_one(*arguments.one)))
        return
    rows = measure(arguments.lane or [*KINDS], arguments.rows)
    print_table(list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
