"""From a file to its first picture: what one process needs of time and memory, and its zooms then.

`python -m tests.bench.bench_timeline.first_picture FILE` prints it as JSON; a file of any size is
written by `huge_profile.py`. Run it twice with one STEPSCOPE_CACHE: first nothing is cached.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from stepscope.app.timeline import Timeline
from stepscope.ingest.trace import Trace
from tests.bench import peak_gb
from tests.bench.bench_timeline import NUM_LANES, WIDTH, ZOOMS, query_ms


def measure_file(path: str) -> dict[str, Any]:
    """Seconds until a file is open, is laid out, and its first lanes are painted; peaks; zooms."""
    began = time.perf_counter()
    trace = Trace.open(path)
    opened_s, opened_gb = time.perf_counter() - began, peak_gb()
    timeline = Timeline.of(trace)
    laid_out_s, laid_out_gb = time.perf_counter() - began, peak_gb()
    timeline.query(*timeline.bounds, WIDTH, range(min(NUM_LANES, len(timeline.lanes))))
    painted_s, cpu_s = time.perf_counter() - began, time.process_time()
    return {
        "spans": trace.num_rows("spans"), "lanes": len(timeline.lanes),
        "opened_s": opened_s, "opened_gb": opened_gb, "laid_out_s": laid_out_s,
        "laid_out_gb": laid_out_gb, "first_picture_s": painted_s, "cpu_s": cpu_s,
        "peak_gb": peak_gb(),
    } | {f"1/{zoom}_ms": query_ms(timeline, zoom) for zoom in ZOOMS}  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(measure_file(sys.argv[1])))
