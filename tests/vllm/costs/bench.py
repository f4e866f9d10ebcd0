"""What recording costs a vLLM: `make bench-vllm`, with and without it, in turn, in one run.

Two engines of one process are given the same requests and step in turn, one with our functions and
one without (`bench_in_turn`). A step is measured in CPU time of all threads of the process: the
engine's one thread spends it in its steps, and the wall's clock tells as much of whoever else has
the processors meanwhile. Those that decode are not all at the same place in a KV block, so that
each step claims as many blocks as another.

Such a difference is a small one of two large times. So our own functions are timed as well, with
what calls them, in another process, and before all that so are hooks of a scheduler without a
model.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stepscope.ingest.trace import Trace
from tests.vllm.costs.bench_hooks import Timed, lines
from tests.vllm.costs.bench_in_turn import Driven, Load, Pair, Placed
from tests.vllm.costs.bench_pairs import More
from tests.vllm.runs import ENGINE, trace_folders
from tests.vllm.tiny_llama import make

ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_CPU_KVCACHE_SPACE": "2",
    "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1",
}  # fmt: skip
LOADS = (
    Load("decode, 64 running", 64),
    Load("decode, 256 running", 256),
    Load("mixed, 64 running, one comes every 4 steps", 64, every=4, room=16, limit=0.02),
    Load("bursts of 32 every 40 steps", 32, burst=40, room=96, limit=0.02),
    Load("64 running, others wait for them to end", 64, every=4, limit=0.02),
)


def _engine(model: Path, load: Load) -> Any:
    from vllm import LLM

    settings = {
        **ENGINE, "model": str(model), "max_model_len": 4096, "num_gpu_blocks_override": 45_000,
        "max_num_seqs": load.num_running + load.room, "max_num_batched_tokens": 2048,
        "disable_log_stats": True,
    }  # fmt: skip
    return LLM(**settings).llm_engine


def drive(model: Path, load: Load, seconds: float, *, is_timed: bool) -> None:
    """Run a load in this process, and print what it took as a line of JSON."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what an engine prints is no answer
    told, grown = (_timed if is_timed else _in_turn)(model, load, seconds)
    answers.write(json.dumps({"told": told, "grown": grown}))
    answers.flush()


def _timed(model: Path, load: Load, seconds: float) -> tuple[Any, int]:
    timed = Timed()
    timed.install()
    driven = Driven(_engine(model, load), load, time.perf_counter)
    rss = _rss()
    told = timed_phases(driven, timed, seconds)
    grown = _rss() - rss
    driven.close()
    return told, grown


def timed_phases(driven: Driven, timed: Timed, seconds: float) -> list[tuple[float, float]]:
    """Seconds of our own functions in a step and of the step, for each phase."""
    told, num_steps = [], driven.num_steps
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        driven.begin()
        timed.ns, timed.is_on = 0, True
        took = sum(driven.at(place) for place in range(num_steps))
        timed.is_on = False
        driven.end()
        told.append((timed.ns / 1e9 / num_steps, took / num_steps))
    return told


def _in_turn(model: Path, load: Load, seconds: float) -> tuple[Any, int]:
    placed = Placed()
    placed.install()
    both = [Driven(_engine(model, load), load, time.process_time) for _ in range(2)]
    rss = _rss()
    told = Pair(both, placed).phases(seconds)
    grown = _rss() - rss
    for driven in both:
        driven.close()
    return told, grown


def main() -> None:
    """Print three lines for each load."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=180, help="of each load, in turn")
    parser.add_argument("--only", default="", help="loads whose name has this")
    parser.add_argument("--scheduler", action="store_true", help="the scheduler alone, no engine")
    parser.add_argument("--drive", nargs=2, metavar=("MODEL", "LOAD"), help=argparse.SUPPRESS)
    parser.add_argument("--timed", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.drive:
        model, number = asked.drive
        drive(Path(model), LOADS[int(number)], asked.seconds, is_timed=asked.timed)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for line in lines(folder, asked.only):
            _print(line)
        if asked.scheduler:
            return
        os.environ.update(ENVIRONMENT)
        model = make(folder / "model")
        for number, load in enumerate(LOADS):
            if asked.only in load.name:
                for line in _measured(model, folder / f"traces-{number}", number, asked.seconds):
                    _print(f"{load.name}: {line}")


def _measured(model: Path, traces: Path, number: int, seconds: float) -> Iterator[str]:
    timed = _driven(model, traces / "timed", number, seconds / 8, "--timed")
    own = sorted(timed["told"], key=lambda both: both[0] / both[1])
    ours, step = own[len(own) // 2]
    yield (
        f"our own functions take {ours * 1e6:,.1f} µs of a step, {ours / step:.2%} of its "
        f"{step * 1e6:,.0f}"
    )
    phases = _driven(model, traces / "in turn", number, seconds)["told"]
    recorded, most = _recorded(traces / "in turn")[0], len(phases) * len(phases[0])
    if not most <= recorded < 2 * most:  # one of two engines' steps, and some between phases
        raise SystemExit(f"{recorded:,} steps were recorded of twice {most:,}")
    limit = LOADS[number].limit
    yield f"{More.of(phases)} of CPU time; at most {limit:.0%} is asked for"
    num_steps, num_bytes = _recorded(traces / "timed")
    yield (
        f"{num_bytes / max(num_steps, 1):,.0f} bytes a step ({num_steps:,} steps); the process "
        f"grew by {timed['grown'] / 2**20:,.1f} MiB"
    )


def _driven(model: Path, traces: Path, number: int, seconds: float, *more: str) -> dict[str, Any]:
    """Run a load in a process of its own."""
    command = [sys.executable, "-m", "tests.vllm.costs.bench", "--drive", str(model), str(number)]
    done = subprocess.run(
        [*command, "--seconds", str(seconds), *more], capture_output=True, text=True, check=False,
        env={**os.environ, "STEPSCOPE_TRACE": str(traces)},
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    told: dict[str, Any] = json.loads(done.stdout)
    return told


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
    main()
