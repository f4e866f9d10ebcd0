"""Laying out a trace on disk, opening its index again, and a window of 64 lanes x 1600 pixels.

Blocks of three shapes, one after the other on the cores of 22 groups, each held for 100 ns before
it runs: every block is two spans. A window is the whole trace, a tenth of it, and so on; each
figure is the median of queries at different places. `opened again` maps the index that was kept.
Memory is the most that the process had more than before it began, what it has mapped of the index
included; `columns` is what the rows of the trace take of it as they are read. Each row is measured
in two processes of their own. `--long` has 1e8 spans, too.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stepscope.app.timeline import Timeline
from stepscope.ingest.frames import conform
from stepscope.ingest.manifest import Manifest, write_manifest
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.storage.store import parquet_name, write_parquet
from stepscope.ingest.trace import Trace
from tests.bench import peak_gb

NUM_GROUPS, NUM_LANES, WIDTH, NUM_PLACES = 22, 64, 1600, 15
SPANS, MANY = (1_000_000, 10_000_000), 100_000_000
ZOOMS = (1, 10, 100, 1_000, 10_000)
ROOT = Path(__file__).resolve().parents[3]
COLUMN_BYTES = 4 + 4 + 8 + 8 + 8 + 1


def measure(*, long: bool = False) -> list[dict[str, Any]]:
    """Return one row per number of spans: seconds, GB, bytes a span, ms of queries."""
    (ROOT / "out").mkdir(exist_ok=True)
    rows = []
    for num_spans in (*SPANS, *([MANY] if long else [])):
        with tempfile.TemporaryDirectory(dir=ROOT / "out") as folder:
            path = Path(folder) / "blocks.trace"
            write_blocks(path, num_spans // 2)
            kept = os.environ | {"STEPSCOPE_CACHE": str(Path(folder) / "cache")}
            command = [sys.executable, "-m", "tests.bench.bench_timeline", str(path)]
            first, again = (
                json.loads(
                    subprocess.run(command, check=True, stdout=-1, env=kept, cwd=ROOT).stdout
                )
                for _ in range(2)
            )
        columns_gb = num_spans // 2 * COLUMN_BYTES / 1e9
        rows.append(
            {
                "spans": num_spans, "build_s": first["s"], "cpu_s": first["cpu_s"],
                "build_gb": first["gb"], "columns_gb": columns_gb, "index_gb": again["index_gb"],
                "bytes_a_span": again["index_gb"] * 1e9 / num_spans,
                "again_s": again["s"], "again_gb": again["gb"],
            }
            | {name: again[name] for name in again if name.endswith("_ms")}
        )  # fmt: skip
    return rows


def measure_one(path: str) -> dict[str, Any]:
    """What a process that opens a trace needs until its lanes are there, and at each zoom then."""
    trace = Trace.open(path)
    before, began, cpu_began = peak_gb(), time.perf_counter(), time.process_time()
    timeline = Timeline.of(trace)
    took_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
    rise_gb = peak_gb() - before
    num_bytes = sum(each.index.columns.num_bytes for each in timeline._layout.sections)
    zooms = {f"1/{zoom}_ms": query_ms(timeline, zoom) for zoom in ZOOMS}
    return {
        "s": took_s, "cpu_s": cpu_s, "gb": rise_gb, "index_gb": num_bytes / 1e9, **zooms,
        "minimap_ms": ms(lambda: timeline.load(WIDTH)),
    }  # fmt: skip


def write_blocks(path: Path, num_blocks: int) -> None:
    """Write a closed trace of blocks of random length and shape, evenly spread over the cores."""
    table, random = BY_NAME["core_spans"], np.random.default_rng(1)
    counts = np.bincount(np.arange(num_blocks) % (NUM_GROUPS * 3), minlength=NUM_GROUPS * 3)
    for core, count in enumerate(counts.tolist()):
        rows = blocks_of(core, int(count), int(counts[:core].sum()), random)
        file = path / "core_spans" / "rank=0" / parquet_name(core, core)
        write_parquet(conform(table, rows.lazy()).collect(), file)
    manifest = Manifest(producer="bench", tables={"core_spans": "complete"})
    write_manifest(manifest, path / "manifest.json")


def blocks_of(core: int, count: int, first: int, random: np.random.Generator) -> pl.DataFrame:
    """The blocks of a core, one after the other."""
    gap, length = random.integers(100, 1_000, count), random.integers(200, 4_000, count)
    end = np.cumsum(gap + length)
    shape = pl.Series(random.integers(0, 3, count)).replace_strict(
        range(3), ["AIC", "AIV", "MIX"], return_dtype=pl.String
    )
    return pl.DataFrame(
        {
            "ts_ns": end - length, "dispatch_ns": end - length - 100, "end_ns": end,
            "task": np.arange(first, first + count), "shape": shape,
        }
    ).with_columns(
        rank=pl.lit(0, pl.Int32), block=pl.lit(0, pl.Int32), core=pl.lit(core, pl.Int32),
        group=pl.lit(core // 3, pl.Int32), core_kind=pl.lit(("AIC", "AIV0", "AIV1")[core % 3]),
    )  # fmt: skip


def query_ms(timeline: Timeline, zoom: int) -> float:
    """The median time to query a window of a part of the timeline, at different places."""
    first, last = timeline.bounds
    width_ns = (last - first) // zoom
    lanes = range(min(NUM_LANES, len(timeline.lanes)))
    starts = np.linspace(first, last - width_ns, NUM_PLACES, dtype=np.int64).tolist()
    return statistics.median(
        ms(partial(timeline.query, t0, t0 + width_ns, WIDTH, lanes)) for t0 in starts
    )


def ms(call: Callable[[], object]) -> float:
    """The milliseconds of a call."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e3
