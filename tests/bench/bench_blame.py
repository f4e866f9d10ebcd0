"""How long `blame` takes over a long run: 12,000 requests in 1.2 million batch rows.

The run is `fcfs-preemption-after` laid end to end, with requests of their own in every copy. Each
size is measured in a process of its own, whose peak memory is told too.
"""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path
from typing import Any

from stepscope.analyzers.latency.blame import blame
from stepscope.ingest.trace import Trace
from tests.bench import peak_gb
from tests.bench.long_runs import laid_end_to_end

COPIES = (30, 300)
SAMPLE = Path(__file__).resolve().parents[2] / "sample_traces" / "fcfs-preemption-after.trace"


def measure(copies: tuple[int, ...] = COPIES) -> list[dict[str, Any]]:
    """Return a row per size: requests, rows, seconds, peak memory, and whether it adds up."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        return pool.map(_measured, copies, chunksize=1)


def _measured(copies: int) -> dict[str, Any]:
    trace = laid_end_to_end(Trace.open(SAMPLE), copies)
    num_rows = trace.num_rows("batch_rows")
    began = time.perf_counter()
    blamed = blame(trace)
    took_s = time.perf_counter() - began
    spent = sum(total.total_ns for total in blamed.totals())
    return {
        "requests": len(blamed.requests),
        "batch rows": num_rows,
        "s": took_s,
        "peak_gb": peak_gb(),
        "adds up": spent == blamed.total_ns,
    }
