"""What recording costs a vLLM: `make bench-vllm`, with and without it, in turn, in one run.

An engine runs blocks of steps with our functions around its own, and without them, in turn: its own
are put back for that, so that nothing of ours runs then. Two engines, or two processes, would
differ by more than what is measured, as where their memory lies makes one of them faster
throughout. At the end of a block all have ended that came in it, so that the n-th step of each
block does the same: the medians of each, with and without, are what is added up and compared, and
what 95% of resamplings of the groups of four blocks give is printed beside it. A step is measured
in CPU time of all threads of the process: the engine's one thread spends it in its steps, and the
wall's clock tells as much of whoever else has the processors meanwhile. Those that decode are not
all at the same place in a KV block, so that each step claims as many blocks as another.

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import mean, median
from typing import Any

from stepscope.ingest.trace import Trace
from tests.vllm.bench_hooks import Ours, Timed, lines
from tests.vllm.runs import ENGINE, trace_folders
from tests.vllm.tiny_llama import make, words

MOST_TOKENS = 1_600
"""Of those that run all the time; before they have as many, others take their place."""
NUM_DRAWN = 400
"""Resamplings."""
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_CPU_KVCACHE_SPACE": "2",
    "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1",
}  # fmt: skip


@dataclass(frozen=True)
class Load:
    """Who comes before each step: how many run at most, and how many come anew in a step.

    `room` is how many more than those may run. A block has `num_steps`: where nobody comes few, so
    that what is compared is near in time.
    """

    name: str
    num_running: int
    every: int = 0
    burst: int = 0
    room: int = 0
    limit: float = 0.01
    num_steps: int = 40


LOADS = (
    Load("decode, 64 running", 64, num_steps=10),
    Load("decode, 256 running", 256, num_steps=10),
    Load("mixed, 64 running, one comes every 4 steps", 64, every=4, room=16, limit=0.02),
    Load("bursts of 32 every 40 steps", 32, burst=40, room=96, limit=0.02),
    Load("64 running, others wait for them to end", 64, every=4, limit=0.02),
)


class Driven:
    """An engine and its requests; `came` counts them."""

    def __init__(self, engine: Any, load: Load, now: Callable[[], float]) -> None:
        self.engine, self.load, self._now = engine, load, now
        self.came, self._num_steps, self._first_of_block = 0, 0, 0
        self.scheduler = engine.engine_core.engine_core.scheduler
        self.fill()
        self.ours = Ours(self.scheduler)

    def fill(self) -> None:
        """Have those come that run all the time."""
        for number in range(self.load.num_running):
            self.add(30 + number % 16, MOST_TOKENS)
        for _ in range(12):
            self.engine.step()
        self._num_steps = 12

    def refill(self) -> None:
        """Have others take their place before they end."""
        if self._num_steps > MOST_TOKENS - 8 * self.load.num_steps:
            self.clear()
            self.fill()

    def add(self, length: int, max_tokens: int) -> None:
        from vllm import SamplingParams

        params = SamplingParams(max_tokens=max_tokens, temperature=0.0, ignore_eos=True)
        self.engine.add_request(f"{self.came:06}", words(length, self.came), params)
        self.came += 1

    def block(self, now: Callable[[], float]) -> list[float]:
        """Seconds of this clock that each step of a block took, with who comes before it."""
        taken, first = [], self.came
        for step in range(self.load.num_steps):
            began = now()
            if self.load.every and step % self.load.every == 0:
                self.add(60 + step, 20)
            if self.load.burst and step % self.load.burst == 0:
                for number in range(32):
                    self.add(20 + number * 7 % 90, 10 + number % 20)
            self.engine.step()
            taken.append(now() - began)
        self._num_steps += len(taken)
        self._first_of_block = first
        return taken

    def wind_down(self) -> None:
        """Let all end that came in a block: none of this is measured."""
        first = self._first_of_block
        if not self.load.room:  # nobody who came could run
            self.engine.abort_request([f"{at:06}" for at in range(first, self.came)])
        while len(self.engine.output_processor.request_states) > self.load.num_running:
            self.engine.step()
            self._num_steps += 1

    def in_turn(self) -> tuple[list[float], list[float]]:
        """Blocks without our functions and with them: one, two and one, as steps become longer
        with what has been computed.
        """
        without: list[float] = []
        ours: list[float] = []
        for has_ours in (False, True, True, False):
            self.ours.put_on() if has_ours else self.ours.take_off()
            taken = ours if has_ours else without
            taken += self.block(self._now)
            self.wind_down()
        self.ours.put_on()
        return without, ours

    def clear(self) -> None:
        self.engine.abort_request(list(self.engine.output_processor.external_req_ids))
        while self.engine.has_unfinished_requests():
            self.engine.step()


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
    timed = Timed()
    if is_timed:
        timed.install()
    driven = Driven(_engine(model, load), load, time.process_time)
    told: list[Any] = []
    rss = _rss()
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        driven.refill()
        if is_timed:
            timed.ns, timed.is_on = 0, True
            took = driven.block(time.perf_counter)
            timed.is_on = False
            driven.wind_down()
            told.append((timed.ns / 1e9 / load.num_steps, mean(took)))
        else:
            told.append(driven.in_turn())
    grown = _rss() - rss
    driven.clear()
    driven.engine.engine_core.shutdown()
    answers.write(json.dumps({"blocks": told, "grown": grown}))
    answers.flush()


def main() -> None:
    """Print three lines for each load."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60, help="of each load, in turn")
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
    timed = _driven(model, traces / "timed", number, seconds / 4, "--timed")
    own = sorted(timed["blocks"], key=lambda both: both[0] / both[1])
    ours, step = own[len(own) // 2]
    yield (
        f"our own functions take {ours * 1e6:,.1f} us of a step, {ours / step:.2%} of its "
        f"{step * 1e6:,.0f}"
    )
    told = _driven(model, traces / "in turn", number, seconds)
    groups, num_steps = told["blocks"], LOADS[number].num_steps
    limit = LOADS[number].limit
    yield f"{compared(groups, num_steps)} of CPU time; at most {limit:.0%} is asked for"
    num_steps, num_bytes = _recorded(traces / "timed")
    yield (
        f"{num_bytes / max(num_steps, 1):,.0f} bytes a step ({num_steps:,} steps); the process "
        f"grew by {timed['grown'] / 2**20:,.1f} MiB"
    )


Group = tuple[list[float], list[float]]
"""Seconds of the steps of two blocks without our functions, and of two with them."""


def compared(groups: Sequence[Group], num_steps: int) -> str:
    """Say how much longer steps are with our functions, and how long they are without."""
    share, low, high = _share(groups, num_steps), *_resampled(groups, num_steps)
    step = _typical([theirs for theirs, _ in groups], num_steps) / num_steps
    return (
        f"with against without, {share:+.2%} ({low:+.2%} to {high:+.2%}, {len(groups)} "
        f"groups of four blocks) of a step of {step * 1e6:,.0f} us"
    )


def _share(groups: Sequence[Group], num_steps: int) -> float:
    without, ours = zip(*groups, strict=True)
    return _typical(ours, num_steps) / _typical(without, num_steps) - 1


def _typical(blocks: Sequence[list[float]], num_steps: int) -> float:
    """Seconds of a block each of whose steps takes what is usual for its place."""
    return sum(
        median(step for block in blocks for step in block[place::num_steps])
        for place in range(num_steps)
    )


def _resampled(groups: Sequence[Group], num_steps: int) -> tuple[float, float]:
    """Between what the middle 95% of shares lie of as many groups, drawn from them."""
    drawn = Random(0)
    shares = sorted(
        _share(drawn.choices(groups, k=len(groups)), num_steps) for _ in range(NUM_DRAWN)
    )
    return shares[NUM_DRAWN // 40], shares[-NUM_DRAWN // 40 - 1]


def _driven(model: Path, traces: Path, number: int, seconds: float, *more: str) -> dict[str, Any]:
    """Run a load in a process of its own."""
    command = [sys.executable, "-m", "tests.vllm.bench", "--drive", str(model), str(number)]
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
