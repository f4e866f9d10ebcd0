"""Rows that the simulated engine schedules in a second, with recording off and on.

`bursts`: 1,280 equal requests, 128 at a time, so that a step decodes 128 rows. `mixed lengths`:
400 requests of log-normal lengths, where a bucket holds few rows and most requests are left out
of each step, with the reason recorded. `mixed batches`: the report's 256 requests of 4,096 and 512
tokens by `paged`, prompts and decodes together. Closing the recording is not counted.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from stepscope.engine.clock import VirtualClock
from stepscope.engine.config import EngineConfig
from stepscope.engine.executors.segments.split import Split
from stepscope.engine.executors.simulated import Simulated
from stepscope.engine.runs.scenario import recorder_for
from stepscope.engine.schedulers.bucketed import Bucketed
from stepscope.engine.schedulers.paged import Paged
from stepscope.engine.serving.engine import Engine
from stepscope.engine.workloads.workload import (
    Workload,
    bursty,
    fixed,
    identical,
    log_normal,
    poisson,
)
from stepscope.ingest.times import SECOND

WORKLOADS = {
    "bursts": bursty(1280, 128, 20 * SECOND, fixed(64, 100), seed=0),
    "mixed lengths": poisson(400, 4.0, log_normal(64, 60, sigma=0.5), seed=0),
    "mixed batches": identical(256, 4096, 512),
}
POOL = EngineConfig(num_kv_blocks=4096)
LARGE_POOL = EngineConfig(num_kv_blocks=80_000, max_num_batched_tokens=2048)


def measure() -> list[dict[str, Any]]:
    """Return one row a workload: rows scheduled, and rows a second without and with recording."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, workload) in enumerate(WORKLOADS.items()):
            is_mixed = name == "mixed batches"
            num_rows, off_s = _timed(workload, None, is_mixed=is_mixed)
            _, on_s = _timed(workload, Path(folder) / f"{number}.trace", is_mixed=is_mixed)
            rows.append(
                {
                    "workload": name,
                    "rows": num_rows,
                    "off_rows/s": round(num_rows / off_s),
                    "on_rows/s": round(num_rows / on_s),
                }
            )
    return rows


def _timed(workload: Workload, out: Path | None, *, is_mixed: bool) -> tuple[int, float]:
    scheduler = Paged(long_prefill_threshold=1792) if is_mixed else Bucketed()
    executor = Simulated(split=Split() if is_mixed else None)
    config = LARGE_POOL if is_mixed else POOL
    with recorder_for(out, "bench", "plain", {}, None) as recorder:
        engine = Engine(config, workload, scheduler, executor, VirtualClock(), recorder)
        began = time.perf_counter()
        engine.run()
        took_s = time.perf_counter() - began
    return sum(each.request.num_generated for each in engine.ended), took_s
