"""What the hooks cost a scheduler of SGLang, without a model: each of its calls is timed.

Runs in the environment that has SGLang, in a process for each of two schedulers, as hooks are put
into classes: `bench_hooks.py KIND NUMBER FOLDER`, where KIND is `plain` or `recorded` and NUMBER is
that of a load. A line of stdin is how many steps to take; a line of stdout, what they took.
"""

# ruff: noqa: PLC0415 - what is SGLang's is imported where it is
from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any, TextIO

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from stepscope.ingest.attach.sglang import registering
from stepscope.ingest.replay.script import Asked

PLAIN, RECORDED = KINDS = ("plain", "recorded")
LONG = 1000
"""More tokens than a run of the bench has steps."""


@dataclass(frozen=True)
class Load:
    """How many run, and how many come every so many steps; `on_gpu`: pages are not told."""

    name: str
    num_running: int
    every: int = 0
    burst: int = 1
    on_gpu: bool = False


LOADS = (
    Load("decode, 64 running", 64),
    Load("decode, 256 running", 256),
    Load("decode, 64 running, pages untold as on a GPU", 64, on_gpu=True),
    Load("decode, 256 running, pages untold as on a GPU", 256, on_gpu=True),
    Load("mixed, 64 running, one comes every 4 steps", 64, every=4),
    Load("bursts of 32 every 40 steps, 64 running", 64, every=40, burst=32),
)


class Driven:
    """A scheduler whose requests each get a token in a step."""

    def __init__(self, load: Load, kind: str, folder: Path) -> None:
        from stepscope.ingest.replay.sglang.scheduler import SglangScheduler

        if kind == PLAIN:
            registering.HOOKS.clear()
        most = load.num_running + 64 * bool(load.every)
        self.sglang = SglangScheduler({
            "max_running_requests": most, "max_total_tokens": 2 * LONG * most, "context_len": 4096,
            "disable_overlap_schedule": True, "enable_mixed_chunk": True,
            "chunked_prefill_size": 2048,
        })  # fmt: skip
        self.scheduler = self.sglang.scheduler
        self.load, self.steps, self.came, self.ours_ns = load, 0, 0, 0
        self.close: Callable[[], None] = _nothing
        if kind == RECORDED:
            self._record(folder)

    def _record(self, folder: Path) -> None:
        from stepscope.ingest.attach.recorded import RecordedScheduler
        from stepscope.ingest.attach.sglang.attached_to import ATTACHED
        from stepscope.ingest.attach.sglang.followed import SGLangScheduler
        from stepscope.ingest.recorder import Recorder

        recorder = Recorder(folder, producer="sglang")
        attached = SGLangScheduler(self.scheduler, RecordedScheduler(recorder))
        attached._pages.are_told &= not self.load.on_gpu
        safely = attached.hooks.safely

        def timed(*args: Any, **kwargs: Any) -> None:
            began = perf_counter_ns()
            safely(*args, **kwargs)
            self.ours_ns += perf_counter_ns() - began

        setattr(attached.hooks, "safely", timed)  # noqa: B010 - it is no assignment that mypy allows
        setattr(self.scheduler, ATTACHED, attached)
        self.close = attached.close

    def fill(self) -> None:
        """Let requests come, and prefill them."""
        for _ in range(self.load.num_running):
            self.add(30, LONG)
        for _ in range(10):
            self.step()

    def add(self, length: int, max_tokens: int) -> None:
        """Let a request come."""
        self.sglang.add(Asked(f"{self.came:06}", length, max_tokens, 0))
        self.came += 1

    def round(self, num_steps: int) -> dict[str, float]:
        """Microseconds a step: of the scheduler's calls, and of what of ours is in them."""
        self.ours_ns = 0
        took = sum(self.step() for _ in range(num_steps))
        return {"step_us": took / num_steps / 1e3, "ours_us": self.ours_ns / num_steps / 1e3}

    def step(self) -> int:
        """Nanoseconds of the scheduler's two calls, and of requests that came; not of the model."""
        began, scheduler = perf_counter_ns(), self.scheduler
        if self.load.every and self.steps % self.load.every == 0:
            for number in range(self.load.burst):
                self.add(60 + (self.steps + number) % 40, 20)
        self.steps += 1
        plan = scheduler.get_next_batch_to_run(
            running_batch=scheduler.running_batch, last_batch=scheduler.last_batch
        )
        scheduler.running_batch, batch = plan.running_batch, plan.batch_to_run
        took = perf_counter_ns() - began
        result = scheduler.run_batch(batch)
        began = perf_counter_ns()
        scheduler.process_batch_result(batch, result)
        scheduler.last_batch = batch
        return took + perf_counter_ns() - began


def _nothing() -> None:
    """There is no recording to close."""


def main() -> None:
    """Serve one load."""
    kind, number, folder = sys.argv[1:]
    tell = _our_own_stdout()
    driven = Driven(LOADS[int(number)], kind, Path(folder))
    driven.fill()
    print("ready", file=tell, flush=True)
    for line in sys.stdin:
        print(json.dumps(driven.round(int(line))), file=tell, flush=True)
    driven.close()
    tell.flush()
    os._exit(0)


def _our_own_stdout() -> TextIO:
    """Keep stdout for us; what SGLang prints goes to stderr."""
    ours = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(ours, "w", encoding="utf-8")


if __name__ == "__main__":
    main()
