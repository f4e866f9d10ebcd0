"""What rules cost: all rules on long runs of every scenario, and the slowest of them.

A run is a recorded scenario laid end to end until its tables have that many rows in all, or that of
core spans has, and written to disk. Each is checked in a process of its own: `s` is the time of all
rules, `cpu_s` that of all its threads, and `peak_gb` the memory of the process.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

from stepscope.analyzers.check.run import check
from stepscope.ingest.storage.saving import save_trace
from stepscope.ingest.trace import Trace
from tests.bench import peak_gb
from tests.bench.long_runs import num_rows, of_rows, recorded

RUNS = (
    ("mix-admission", "before", "core_spans"),
    ("ep-multiplexing", "after", ""),
    ("mixed-batches", "after", ""),
    ("fcfs-preemption", "after", ""),
    ("slot-recycling", "after", ""),
)
ROWS = (1_000_000, 10_000_000)
NUM_SLOWEST = 3


def measure(rows: tuple[int, ...] = ROWS) -> list[dict[str, Any]]:
    """Return a row per scenario and size."""
    measured = []
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for run, size in product(RUNS, rows):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"{run[0]}.trace"
                pool.apply(_record, (*run, size, path))
                measured.append(pool.apply(_measured, (path,)))
    return measured


def _record(name: str, variant: str, table: str, rows: int, path: Path) -> None:
    save_trace(of_rows(recorded(name, variant), rows, table), path)


def _measured(path: Path) -> dict[str, Any]:
    trace = Trace.open(path)
    began: dict[str, float] = {}

    def note(code: str, _done: int, _of: int | None) -> None:
        began[code] = time.perf_counter()

    clock, cpu = time.perf_counter(), time.process_time()
    result = check(trace, progress=note)
    took_s, cpu_s = time.perf_counter() - clock, time.process_time() - cpu
    ends = [*list(began.values())[1:], clock + took_s]
    each_s = {code: end - began[code] for code, end in zip(began, ends, strict=True)}
    slowest = sorted(each_s, key=lambda code: -each_s[code])[:NUM_SLOWEST]
    return {
        "run": path.stem,
        "rows": num_rows(trace),
        "s": took_s,
        "cpu_s": cpu_s,
        "peak_gb": peak_gb(),
        "rules": len(result.counts),
        "findings": len(result.findings),
        "slowest": " ".join(f"{code} {each_s[code]:.1f}" for code in slowest),
    }
