"""What recording costs a vLLM: `make bench-vllm`, with and without it, in turn, in one run.

Two processes have an engine each, of which one is recorded; in the other nothing of ours is loaded.
They take turns, block by block of steps, so that whatever else the machine does hits both. Where
the memory of a process lies makes it faster or slower throughout, so there are several such pairs.
What is printed is the median of all differences between neighbouring blocks, and that of each pair.

Such a difference is a small one of two large times. So a third process is timed in our own
functions, with what calls them, and before all that so are hooks of a scheduler without a model.
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
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from tests.vllm.bench_hooks import Timed, lines
from tests.vllm.runs import ENGINE, trace_folders
from tests.vllm.tiny_llama import make, words

BLOCK_STEPS = 40
MOST_TOKENS = 960
"""Of those that run from the beginning: more than the steps that are measured."""
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_CPU_KVCACHE_SPACE": "2",
    "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1",
}  # fmt: skip


@dataclass(frozen=True)
class Load:
    """Who comes before each step: how many run at most, and how many come anew in a step.

    `room` is how many more than those may run.
    """

    name: str
    num_running: int
    every: int = 0
    burst: int = 0
    room: int = 0
    limit: float = 0.01


LOADS = (
    Load("decode, 64 running", 64),
    Load("decode, 256 running", 256),
    Load("mixed, 64 running, one comes every 4 steps", 64, every=4, room=16, limit=0.02),
    Load("bursts of 32 every 40 steps", 32, burst=40, room=96, limit=0.02),
    Load("64 running, others wait for them to end", 64, every=4, limit=0.02),
)


class Driven:
    """An engine and its requests; `came` counts them."""

    def __init__(self, model: Path, load: Load) -> None:
        from vllm import LLM

        settings = {
            **ENGINE, "model": str(model), "max_model_len": 1024, "num_gpu_blocks_override": 20_000,
            "max_num_seqs": load.num_running + load.room, "max_num_batched_tokens": 2048,
            "disable_log_stats": True,
        }  # fmt: skip
        self.engine: Any = LLM(**settings).llm_engine
        self.load, self.came = load, 0
        for _ in range(load.num_running):
            self.add(30, MOST_TOKENS)
        for _ in range(12):
            self.engine.step()

    def add(self, length: int, max_tokens: int) -> None:
        from vllm import SamplingParams

        params = SamplingParams(max_tokens=max_tokens, temperature=0.0, ignore_eos=True)
        self.engine.add_request(f"{self.came:06}", words(length, self.came), params)
        self.came += 1

    def block(self) -> list[float]:
        """Seconds that each step of a block took."""
        taken = []
        for step in range(BLOCK_STEPS):
            if self.load.every and step % self.load.every == 0:
                self.add(60 + step, 20)
            if self.load.burst and step % self.load.burst == 0:
                for number in range(32):
                    self.add(20 + number * 7 % 90, 10 + number % 20)
            began = time.perf_counter()
            self.engine.step()
            taken.append(time.perf_counter() - began)
        return taken

    def end(self) -> None:
        self.engine.abort_request(list(self.engine.output_processor.external_req_ids))
        while self.engine.has_unfinished_requests():
            self.engine.step()
        self.engine.engine_core.shutdown()


def drive(model: Path, *, is_timed: bool) -> None:
    """Do what the parent says on standard input, a line each; answer with a line of JSON each."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what an engine prints is no answer
    timed = Timed()
    if is_timed:
        timed.install()
    driven: Driven | None = None
    for line in sys.stdin:
        told: dict[str, Any] = {}
        if line.strip() == "block" and driven is not None:
            timed.ns, timed.is_on = 0, True
            told = {"took": driven.block(), "ours": timed.ns / 1e9, "rss": _rss()}
            timed.is_on = False
        elif line.strip() == "end" and driven is not None:
            driven.end()
            driven = None
        else:
            driven = Driven(model, LOADS[int(line)])
            told = {"rss": _rss()}
        answers.write(json.dumps(told) + "\n")
        answers.flush()


class Process:
    """A process that drives engines; its traces lie in `folder`, None: nothing is recorded."""

    def __init__(self, model: Path, folder: Path | None, *, is_timed: bool = False) -> None:
        environment = {**os.environ, **ENVIRONMENT, "STEPSCOPE_TRACE": str(folder or "")}
        if folder is None:
            del environment["STEPSCOPE_TRACE"]
        self.folder = folder
        command = [sys.executable, "-m", "tests.vllm.bench", "--drive", str(model)]
        self._process = subprocess.Popen(
            [*command, "--timed"] if is_timed else command, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def ask(self, what: str | int) -> dict[str, Any]:
        given, answers = self._process.stdin, self._process.stdout
        assert given is not None
        assert answers is not None
        given.write(f"{what}\n")
        given.flush()
        answer: dict[str, Any] = json.loads(answers.readline())
        return answer

    def stop(self) -> None:
        self._process.communicate(timeout=60)


def main() -> None:
    """Print a few lines for each load."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int, default=12, help="blocks of each process of a pair")
    parser.add_argument("--pairs", type=int, default=3, help="pairs of processes")
    parser.add_argument("--only", default="", help="loads whose name has this")
    parser.add_argument("--scheduler", action="store_true", help="the scheduler alone, no engine")
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--timed", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.drive:
        drive(asked.drive, is_timed=asked.timed)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for line in lines(folder, asked.only):
            _print(line)
        if not asked.scheduler:
            os.environ.update(ENVIRONMENT)
            _measure(folder, asked.only, asked.pairs, asked.blocks)


def _measure(folder: Path, only: str, num_pairs: int, num_blocks: int) -> None:
    model = make(folder / "model")
    timed = Process(model, folder / "timed", is_timed=True)
    for number, load in _loads(only):
        _print(f"{load.name}: {_ours(timed, number, num_blocks)}")
    timed.stop()
    costs: dict[int, list[list[tuple[float, float]]]] = {}
    last: dict[int, str] = {}
    for pair in range(num_pairs):
        ours, theirs = Process(model, folder / f"pair-{pair}"), Process(model, None)
        for number, _ in _loads(only):
            blocks, last[number] = _in_turn(ours, theirs, number, num_blocks)
            costs.setdefault(number, []).append(blocks)
        ours.stop()
        theirs.stop()
    for number, load in _loads(only):
        _print(f"{load.name}: {_difference(load, costs[number])}; {last[number]}")


def _loads(only: str) -> Iterator[tuple[int, Load]]:
    return ((number, load) for number, load in enumerate(LOADS) if only in load.name)


def _ours(process: Process, number: int, num_blocks: int) -> str:
    """Say what our own functions take of a step, in the middle one of some blocks."""
    process.ask(number)
    told = [process.ask("block") for _ in range(num_blocks)]
    process.ask("end")
    each = [(block["ours"] / BLOCK_STEPS, mean(block["took"])) for block in told]
    ours, step = sorted(each, key=lambda both: both[0] / both[1])[len(each) // 2]
    return (
        f"our own functions take {ours * 1e6:,.1f} us of a step, {ours / step:.2%} of its "
        f"{step * 1e6:,.0f}"
    )


def _in_turn(
    ours: Process, theirs: Process, number: int, num_blocks: int
) -> tuple[list[tuple[float, float]], str]:
    """A step's seconds without and with, of neighbouring blocks; bytes and memory of the one."""
    load, before = LOADS[number], _recorded(ours)
    began, _ = ours.ask(number), theirs.ask(number)
    usual = mean if load.every or load.burst else median
    blocks, grown = [], 0
    for turn in range(num_blocks):
        order = (theirs, ours) if turn % 2 else (ours, theirs)
        told = {process: process.ask("block") for process in order}
        blocks.append((usual(told[theirs]["took"]), usual(told[ours]["took"])))
        grown = told[ours]["rss"] - began["rss"]
    ours.ask("end")
    theirs.ask("end")
    num_bytes = _recorded(ours) - before
    num_steps = num_blocks * BLOCK_STEPS + 12
    return blocks, (
        f"{num_bytes / num_steps:,.0f} bytes a step; its process grew by {grown / 2**20:,.1f} MiB"
    )


def _difference(load: Load, pairs: list[list[tuple[float, float]]]) -> str:
    """Say what steps took more with than without."""
    shares = [median(ours / theirs - 1 for theirs, ours in blocks) for blocks in pairs]
    every = sorted(ours / theirs - 1 for blocks in pairs for theirs, ours in blocks)
    low, cost, high = (every[len(every) * part // 4] for part in (1, 2, 3))
    step = median(theirs for blocks in pairs for theirs, _ in blocks)
    said = ", ".join(f"{share:+.2%}" for share in shares)
    return (
        f"with against without, {cost:+.2%} ({low:+.2%} to {high:+.2%}; each pair {said}) of a "
        f"step of {step * 1e6:,.0f} us; at most {load.limit:.0%} is asked for"
    )


def _recorded(process: Process) -> int:
    """Bytes of what was recorded by a process."""
    if process.folder is None or not process.folder.exists():
        return 0
    files = [path for each in trace_folders(process.folder) for path in each.rglob("*")]
    return sum(path.stat().st_size for path in files if path.is_file())


def _rss() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
