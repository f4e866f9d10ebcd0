"""How long a user waits for an answer: start-up, `check` of the samples, all rules on a big trace.

Wall time in fresh processes, medians. The big trace is `mix-admission-before` laid end to end, with
tasks of their own in every copy; its peak memory is that of the process that checks it.
"""

from __future__ import annotations

import multiprocessing
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.analyzers.run import check
from stepscope.ingest.trace import Trace

RUNS = 5
BIG_ROWS = (1_000_000, 10_000_000)
TASKS_OF_A_COPY = 1 << 40
SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"


def measure(big_rows: tuple[int, ...] = BIG_ROWS) -> list[dict[str, Any]]:
    """Return a row per command, and for each of `big_rows` one for all rules on as many spans."""
    commands = [["--version"], *(["check", str(path)] for path in _samples())]
    rows: list[dict[str, Any]] = [
        {"what": " ".join(Path(word).name for word in command), "s": _median_s(command)}
        for command in commands
    ]
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        return rows + pool.map(_check_big, big_rows, chunksize=1)


def _samples() -> list[Path]:
    return sorted(path for path in SAMPLES.iterdir() if path.suffix in {".trace", ".gz"})


def _median_s(command: list[str]) -> float:
    return statistics.median(_wall_s(command) for _ in range(RUNS))


def _wall_s(command: list[str]) -> float:
    began = time.perf_counter()
    whole = [sys.executable, "-m", "stepscope.app", *command]
    subprocess.run(whole, check=False, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _check_big(num_rows: int) -> dict[str, Any]:
    sample = Trace.open(SAMPLES / "mix-admission-before.trace")
    trace = tiled(sample, num_rows // sample.num_rows("core_spans"))
    size = trace.num_rows("core_spans")
    began = time.perf_counter()
    check(trace)
    took_s = time.perf_counter() - began
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"what": f"all rules, {size:,} core spans, peak {peak_gb:.2f} GB", "s": took_s}


def tiled(trace: Trace, copies: int) -> Trace:
    """Lay a trace end to end `copies` times; steps and tasks of each copy are its own."""
    steps = trace.steps.collect()
    length_ns, num_steps = int((steps["ts_ns"] + steps["dur_ns"]).max()), len(steps)  # type: ignore[arg-type]
    copy = pl.LazyFrame({"copy": range(copies)}, schema={"copy": pl.Int64})
    tables = {}
    for name in ("steps", "tasks", "core_spans", "task_edges", "decisions"):
        frame = trace.table(name)
        columns = frame.collect_schema().names()
        times = [c for c in columns if c.endswith("_ns") and c != "dur_ns"]
        shifts = [pl.col(c) + pl.col("copy") * length_ns for c in times]
        shifts.append(pl.col("step") + pl.col("copy") * num_steps)
        tasks = [c for c in ("task", "from_task", "to_task") if c in columns]
        shifts += [pl.col(c) + (pl.col("copy") * TASKS_OF_A_COPY) for c in tasks]
        tables[name] = frame.join(copy, how="cross").with_columns(shifts).select(columns).collect()
    return Trace.from_tables(tables, trace.manifest)
