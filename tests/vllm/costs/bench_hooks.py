"""What the hooks cost a scheduler of vLLM, without a model: CPU time of the thread that schedules.

Two schedulers step in turn, one with our functions and one without (`bench_in_turn`). Between two
calls a forward pass pushes everything out of the processor's caches; here a walk over memory does
(`cold`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from stepscope.ingest.attach.hooks import Hooks
from stepscope.ingest.attach.recorded import RecordedScheduler
from stepscope.ingest.attach.vllm.attached import AttachedScheduler
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.replay.script import Asked
from stepscope.ingest.replay.vllm.scheduler import VllmScheduler
from tests.vllm.costs.bench_in_turn import Pair, Placed, parts_of_scheduler
from tests.vllm.costs.bench_pairs import More

BLOCK_SIZE = 16
CACHE = np.zeros(2 * 2**20)
"""Sixteen mebibytes: more than a core's own caches."""


@dataclass(frozen=True)
class Load:
    """How many run, how many wait behind them, how many come every so many steps."""

    name: str
    num_running: int
    num_waiting: int = 0
    every: int = 0
    burst: int = 1
    caches: bool = False


LOADS = (
    Load("decode, 64 running", 64),
    Load("decode, 256 running", 256),
    Load("decode, 64 running, prefix cache", 64, caches=True),
    Load("decode, 64 running, 200 waiting", 64, num_waiting=200),
    Load("mixed, 64 running, one comes every 4 steps", 64, every=4),
    Load("bursts of 32 every 40 steps, 64 running", 64, every=40, burst=32),
)


class Timed:
    """Nanoseconds in all that is called around an engine's functions, with what calls it.

    Each of these functions is timed whole, and the engine's own function inside; the rest is ours.
    The clock is the wall's: one of CPU time is a call of the system, which costs more than most of
    what it would measure and leaves less of it in the processor's caches.
    """

    def __init__(self) -> None:
        self.ns, self.is_on = 0, False
        began = time.perf_counter_ns()
        for _ in range(1000):
            time.perf_counter_ns()
        self._clock_ns = (time.perf_counter_ns() - began) // 1000

    def install(self) -> None:
        """Have what is put around functions from now on timed, while `is_on`."""
        for way in ("around", "instead"):
            setattr(Hooks, way, self._timed(getattr(Hooks, way)))

    def _timed(self, put: Callable[..., None]) -> Callable[..., None]:
        def timed_put(
            hooks: Hooks, owner: Any, name: str, takes: Any = (), *ours: Any, **more: Any
        ) -> None:
            if hooks.find(owner, name, takes) is None:
                return
            theirs = _Theirs(getattr(owner, name))
            setattr(owner, name, theirs.function)
            put(hooks, owner, name, takes, *ours, **more)
            setattr(owner, name, self._whole(getattr(owner, name), theirs))

        return timed_put

    def _whole(self, hooked: Callable[..., Any], theirs: _Theirs) -> Callable[..., Any]:
        @wraps(hooked)
        def whole(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter_ns()
            try:
                return hooked(*args, **kwargs)
            finally:
                if self.is_on:
                    took = time.perf_counter_ns() - began - theirs.ns
                    self.ns += took - 2 * self._clock_ns

        return whole


class _Theirs:
    """A function of an engine's, and how long its last call took."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.ns = 0

        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter_ns()
            try:
                return function(*args, **kwargs)
            finally:
                self.ns = time.perf_counter_ns() - began

        self.function = timed


class Driven:
    """A scheduler, fed with one token for each request of a batch that gives one."""

    def __init__(self, load: Load, *, cold: bool) -> None:
        most = load.num_running + (0 if load.num_waiting else 64 * bool(load.every))
        config = {
            "block_size": BLOCK_SIZE, "num_blocks": 40_000, "max_model_len": 8192,
            "max_num_seqs": most, "max_num_batched_tokens": 2048,
            "enable_prefix_caching": load.caches,
        }  # fmt: skip
        self.load, self.came, self.num_steps = load, 0, 40
        self._pushed_out = CACHE if cold else None
        self.vllm = VllmScheduler(config)
        self.scheduler = self.vllm.scheduler

    def fill(self) -> None:
        """Let requests come, and prefill them."""
        for _ in range(self.load.num_running + self.load.num_waiting):
            self.add(30, 8000)
        for _ in range(20):
            self.idle()

    def add(self, length: int, max_tokens: int) -> None:
        self.vllm.add(Asked(f"{self.came:06}", length, max_tokens, 0))
        self.came += 1

    def begin(self) -> None:
        pass

    def idle(self) -> None:
        self._step()

    def at(self, place: int) -> float:
        """CPU seconds of the scheduler's two calls, and of requests that came."""
        load, took = self.load, 0
        if load.every and place % load.every == 0:
            began = time.thread_time_ns()
            for number in range(load.burst):
                self.add(60 + (place + number) % 40, 20)
            took += time.thread_time_ns() - began
        return (took + self._step()) / 1e9

    def end(self) -> None:
        load = self.load
        while len(self.scheduler.requests) > load.num_running + load.num_waiting:
            self._step()

    def parts(self) -> Sequence[Any]:
        return parts_of_scheduler(self.scheduler)

    def _step(self) -> int:
        _push_out(self._pushed_out)
        began = time.thread_time_ns()
        output = self.scheduler.schedule()
        took = time.thread_time_ns() - began
        made = _made(self.scheduler, output)
        _push_out(self._pushed_out)
        began = time.thread_time_ns()
        self.scheduler.update_from_output(output, made)
        return took + time.thread_time_ns() - began


def cost(load: Load, folder: Path, *, cold: bool, seconds: float = 6) -> More:
    """What recording adds to a step of the scheduler alone."""
    placed = Placed()
    with placed.installed():
        both = [Driven(load, cold=cold) for _ in range(2)]
        attached = [
            AttachedScheduler(
                each.scheduler,
                RecordedScheduler(Recorder(folder / str(number), producer="vllm")),
            )
            for number, each in enumerate(both)
        ]
    for each in both:
        each.fill()
    more = More.of(Pair(both, placed).phases(seconds))
    for ours in attached:
        ours.close()
    return more


def lines(folder: Path, only: str = "") -> Iterator[str]:
    """Two lines for each load whose name has `only`."""
    for number, load in enumerate(LOADS):
        for cold in (False, True) if only in load.name else ():
            more = cost(load, folder / f"hooks-{number}-{cold}", cold=cold)
            how = "out of cold caches" if cold else "out of warm caches"
            hooks = [share * more.step * 1e6 for share in (more.share, more.low, more.high)]
            yield (
                f"{load.name}, {how}: the scheduler takes {more.step * 1e6:,.1f} µs of CPU a step, "
                f"its hooks {hooks[0]:+,.1f} µs ({hooks[1]:+,.1f} to {hooks[2]:+,.1f})"
            )


def _push_out(cache: Any) -> None:
    if cache is not None:
        cache += 1.0


def _made(scheduler: Any, output: Any) -> Any:
    """What a model gives for a batch: a token for each row that does not leave its prompt open."""
    from vllm.v1.outputs import ModelRunnerOutput

    names = list(output.num_scheduled_tokens)
    requests = scheduler.requests
    sampled = [
        [1] if requests[name].num_computed_tokens >= requests[name].num_tokens else []
        for name in names
    ]
    return ModelRunnerOutput(
        req_ids=names, req_id_to_index={name: at for at, name in enumerate(names)},
        sampled_token_ids=sampled, logprobs=None, prompt_logprobs_dict={}, pooler_output=[],
    )  # fmt: skip
