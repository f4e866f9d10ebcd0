"""What recording costs a vLLM: `make bench-vllm`. Two engines in one process, one is recorded.

They take turns, block by block of steps, so that whatever else the machine does hits both. Each
block's median step is compared with that of its neighbour; the medians of these are printed. Where
a machine is busy, that says little: so the CPU time in our own functions is printed too, and before
all that what they cost a scheduler without a model.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

from stepscope.ingest.trace import Trace
from tests.vllm.bench_hooks import Timed, lines
from tests.vllm.runs import ENGINE, trace_folders
from tests.vllm.tiny_llama import make, words

BLOCK_STEPS = 25
MOST_TOKENS = 900


class Took(NamedTuple):
    """Seconds by the clock, and of the engine's own thread on a CPU, which other work spares."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Load:
    """Who comes before each step: how many run at most, and how many come anew in a step."""

    name: str
    num_running: int
    every: int = 0
    burst: int = 0
    limit: float = 0.01


LOADS = (
    Load("decode, 64 running", 64),
    Load("decode, 256 running", 256),
    Load("mixed, 64 running, one comes every 4 steps", 64, every=4, limit=0.02),
    Load("bursts of 32 every 40 steps", 128, burst=40, limit=0.02),
)


class Driven:
    """An engine and its requests; `came` counts them."""

    def __init__(self, model: Path, name: str, num_running: int) -> None:
        from vllm import LLM

        settings = {
            **ENGINE, "model": str(model), "max_model_len": 1024, "num_gpu_blocks_override": 9000,
            "max_num_seqs": num_running, "max_num_batched_tokens": 2048, "disable_log_stats": True,
        }  # fmt: skip
        self.engine: Any = LLM(**settings).llm_engine
        self.name, self.came = name, 0

    def add(self, length: int, max_tokens: int) -> None:
        from vllm import SamplingParams

        params = SamplingParams(max_tokens=max_tokens, temperature=0.0, ignore_eos=True)
        self.engine.add_request(f"{self.name}-{self.came}", words(length, self.came), params)
        self.came += 1

    def step(self) -> Took:
        """How long a step of the engine took."""
        began, began_cpu = time.perf_counter(), time.thread_time()
        self.engine.step()
        return Took(time.perf_counter() - began, time.thread_time() - began_cpu)

    def clear(self) -> None:
        names = list(self.engine.output_processor.external_req_ids)
        self.engine.abort_request(names)
        while self.engine.has_unfinished_requests():
            self.engine.step()


def main() -> None:
    """Print a line for each load."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int, default=12, help="blocks of steps for each engine")
    parser.add_argument("--only", default="", help="loads whose name has this")
    parser.add_argument("--scheduler", action="store_true", help="the scheduler alone, no engine")
    asked = parser.parse_args()
    timed = Timed()
    with tempfile.TemporaryDirectory() as folder:
        for line in lines(Path(folder), asked.only):
            _print(line)
        if asked.scheduler:
            return
        timed.install()
        model = make(Path(folder) / "model")
        for number, load in enumerate(LOADS):
            if asked.only in load.name:
                _measure(load, model, Path(folder) / f"traces-{number}", asked.blocks, timed)


def _measure(load: Load, model: Path, traces: Path, num_blocks: int, timed: Timed) -> None:
    os.environ["STEPSCOPE_TRACE"] = str(traces)
    recorded = Driven(model, "with", load.num_running)
    os.environ.pop("STEPSCOPE_TRACE")
    plain = Driven(model, "without", load.num_running)
    pairs: list[tuple[Took, Took]] = []
    rss = _rss()
    for engine in (plain, recorded):
        _fill(engine, load)
    for number in range(num_blocks):
        order = (plain, recorded) if number % 2 else (recorded, plain)
        taken = {engine.name: _block(engine, load) for engine in order}
        pairs.append((taken["without"], taken["with"]))
    grown = _rss() - rss
    ours_us, step_us = _ours(recorded, load, timed, num_blocks)
    _print(f"{load.name}: our own functions take {ours_us:,.1f} us of CPU a step, "
           f"{ours_us / step_us:.2%} of its {step_us:,.0f}")  # fmt: skip
    for engine in (plain, recorded):
        engine.clear()
        engine.engine.engine_core.shutdown()
    num_steps, num_bytes = _recorded(traces)
    for name in Took._fields:
        costs = sorted(getattr(ours, name) - getattr(theirs, name) for theirs, ours in pairs)
        plain_s = median(getattr(theirs, name) for theirs, _ in pairs)
        low, cost, high = (costs[len(costs) * part // 4] * 1e6 for part in (1, 2, 3))
        _print(
            f"{load.name}, {name}: a step takes {plain_s * 1e6:,.0f} us; recording it, "
            f"{cost:+,.1f} us ({low:+,.1f} to {high:+,.1f}), {cost / plain_s / 1e6:+.2%} "
            f"(at most {load.limit:.0%}), median of {len(pairs)} pairs of blocks"
        )
    each = num_bytes / max(num_steps, 1)
    _print(
        f"{load.name}: {each:,.0f} bytes a step ({num_steps:,} steps); "
        f"both engines grew by {grown / 2**20:,.1f} MiB"
    )
    del recorded, plain
    gc.collect()


def _fill(engine: Driven, load: Load) -> None:
    for _ in range(load.num_running if not load.burst else 32):
        engine.add(30, MOST_TOKENS)
    for _ in range(8):
        engine.step()


def _block(engine: Driven, load: Load) -> Took:
    """What a step took: the median of steady ones, the mean where they differ by nature."""
    taken = [engine.step() for _ in _coming(engine, load)]
    usual = mean if load.every or load.burst else median
    return Took(usual(took.wall for took in taken), usual(took.cpu for took in taken))


def _ours(engine: Driven, load: Load, timed: Timed, num_blocks: int) -> tuple[float, float]:
    """Microseconds of CPU of our functions and of a step, in the middle one of some blocks."""
    found: list[tuple[float, float]] = []
    for _ in range(max(num_blocks // 2, 3)):
        timed.ns, timed.is_on = 0, True
        taken = [engine.step().cpu for _ in _coming(engine, load)]
        timed.is_on = False
        found.append((timed.ns / len(taken) / 1e3, mean(taken) * 1e6))
    return sorted(found)[len(found) // 2]


def _coming(engine: Driven, load: Load) -> Iterator[int]:
    steps = BLOCK_STEPS if not load.burst else load.burst
    for step in range(steps):
        if load.every and step % load.every == 0:
            engine.add(60 + step % 40, 20)
        if load.burst and step == 0:
            for number in range(32):
                engine.add(20 + number * 7 % 90, 10 + number % 20)
        yield step


def _recorded(traces: Path) -> tuple[int, int]:
    folders = trace_folders(traces)
    num_steps = sum(Trace.open(folder).steps.collect().height for folder in folders)
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return num_steps, sum(path.stat().st_size for path in files)


def _rss() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    for name, value in (("VLLM_ENABLE_V1_MULTIPROCESSING", "0"), ("OMP_NUM_THREADS", "1"),
                        ("VLLM_CPU_OMP_THREADS_BIND", "nobind"), ("HF_HUB_OFFLINE", "1"),
                        ("VLLM_CPU_KVCACHE_SPACE", "2"), ("VLLM_LOGGING_LEVEL", "ERROR"),
                        ("VLLM_NO_USAGE_STATS", "1")):  # fmt: skip
        os.environ.setdefault(name, value)
    os.environ["STEPSCOPE_TRACE"] = tempfile.gettempdir()  # so that the plug-in is loaded at all
    main()
