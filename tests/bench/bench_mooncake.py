"""A whole published workload, and a million requests, served and recorded: time and peak memory.

Mooncake's conversation trace (12,031 requests, prompts of up to 126,195 tokens, with the hashes by
which they share prefixes) in quarters, and requests that are made up as they arrive. Each run is a
process of its own, so that `peak_mb` is its own; `loaded_mb` is what it held before the first step,
workload and all. Memory that a run needs beyond that must not grow with the number of requests.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from stepscope.engine.clock import VirtualClock
from stepscope.engine.config import EngineConfig
from stepscope.engine.executors.simulated import CostModel, Simulated
from stepscope.engine.requests.request import Request
from stepscope.engine.runs.metrics import Totals
from stepscope.engine.runs.scenario import recorder_for
from stepscope.engine.schedulers.paged import Paged
from stepscope.engine.serving.engine import Engine
from stepscope.engine.workloads.workload import Workload
from tests.bench import peak_gb

MOONCAKE = Path(__file__).parents[3] / "shared/data/requests/mooncake_conversation_trace.jsonl"
ALL = 12_031
# A node that keeps up with the arrivals: 100,000 prompt tokens a second, 3 M tokens of KV, in
# blocks of 512 tokens, which is what a hash of the trace stands for.
NODE = CostModel(base_ns=15_000_000, prefill_token_ns=10_000, decode_row_ns=20_000, kv_token_ns=1)
POOL = EngineConfig(num_kv_blocks=6_000, block_size=512, prefix_cache=True)
CARD = CostModel(base_ns=1_000_000, prefill_token_ns=1_000, decode_row_ns=1_000, kv_token_ns=1)


def measure() -> list[dict[str, Any]]:
    """Return a row a run: wall time, rows a second, and peak memory."""
    runs = [("mooncake", ALL // 4), ("mooncake", ALL // 2), ("mooncake", ALL)]
    runs = runs if MOONCAKE.exists() else []
    runs += [("made up", 250_000), ("made up", 1_000_000)]
    return [_in_process_of_its_own(kind, num_requests) for kind, num_requests in runs]


def _in_process_of_its_own(kind: str, num_requests: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.bench_mooncake", kind, str(num_requests)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def _run(kind: str, num_requests: int) -> dict[str, Any]:
    requests: Iterable[Request] = _made_up(num_requests)
    if kind == "mooncake":
        requests = Workload.load(MOONCAKE).first(num_requests)
    cost = NODE if kind == "mooncake" else CARD
    totals = Totals()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "run.trace"
        loaded_mb = 1e3 * peak_gb()
        began = time.perf_counter()
        with recorder_for(trace, "bench", "plain", {}, None) as recorder:
            engine = Engine(
                POOL, requests, Paged(), Simulated(cost), VirtualClock(), recorder,
                on_end=totals.add,
            )  # fmt: skip
            engine.run()
            took_s = time.perf_counter() - began
        closed_s = time.perf_counter() - began
        peak_mb = 1e3 * peak_gb()
        files = [file for file in trace.rglob("*") if file.is_file()]
        num_rows = _num_rows(trace)
        return {
            "workload": kind,
            "requests": num_requests,
            "finished": totals.num_finished,
            "steps": engine.state.step - 1,
            "rows": num_rows,
            "run_s": took_s,
            "rows/s": round(num_rows / took_s),
            "with_close_s": closed_s,
            "loaded_mb": loaded_mb,
            "peak_mb": peak_mb,
            "trace_mb": sum(file.stat().st_size for file in files) / 1e6,
        }


def _num_rows(trace: Path) -> int:
    from stepscope.ingest.trace import Trace  # noqa: PLC0415 - brings Polars, and its memory

    return Trace.open(trace).num_rows("batch_rows")


def _made_up(num_requests: int) -> Iterator[Request]:
    """Short requests, a thousand a second."""
    for i in range(num_requests):
        yield Request(f"req-{i}", i * 1_000_000, 20 + i % 13, 2 + i % 3)


if __name__ == "__main__":
    print(json.dumps(_run(sys.argv[1], int(sys.argv[2]))))
