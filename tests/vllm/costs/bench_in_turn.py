"""Two engines of vLLM in one process that step in turn, one with our functions and one without.

Both are given the same requests, so that each pair of steps does the same at nearly the same time:
a processor that others use as well becomes faster and slower by half within seconds, but little
between two steps. The other of the two engines has our functions in the next phase, as where its
memory lies makes one of them faster throughout, and which goes first changes from pair to pair.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from types import MethodType
from typing import Any, Protocol

from stepscope.ingest.attach.hooks import Hooks
from stepscope.ingest.attach.vllm.waiting.line import WaitingLine
from tests.vllm.tiny_llama import words

MOST_TOKENS = 1_600
"""Of those that run all the time; before they have as many, others take their place."""
WARM_UP = 2
"""Steps after a change of who is recorded: a recorder then sees for once what it had missed."""


@dataclass(frozen=True)
class Load:
    """Who comes before each step: how many run at most, and how many come anew in a step.

    `room` is how many more than those may run. A phase has `num_steps`.
    """

    name: str
    num_running: int
    every: int = 0
    burst: int = 0
    room: int = 0
    limit: float = 0.01
    num_steps: int = 40


class Placed:
    """What was put around functions after `install`, so that it can be taken off an engine.

    Functions of a class are called through it by every engine of a process. They are given to the
    parts of one engine alone, and the class has its own again.
    """

    def __init__(self) -> None:
        self._placed: list[tuple[Any, str, Callable[..., Any]]] = []
        self._own: dict[tuple[type, str], Any] = {}

    def install(self) -> None:
        """Have all be known that is put around functions from now on."""
        for way in ("around", "instead"):
            setattr(Hooks, way, self._knowing(getattr(Hooks, way)))

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Have it known of what is put around functions within."""
        ways = {way: getattr(Hooks, way) for way in ("around", "instead")}
        self.install()
        try:
            yield
        finally:
            for way, put in ways.items():
                setattr(Hooks, way, put)

    def _knowing(self, put: Callable[..., None]) -> Callable[..., None]:
        @wraps(put)
        def knowing(hooks: Hooks, owner: Any, name: str, *more: Any, **calls: Any) -> None:
            own = vars(owner).get(name) if isinstance(owner, type) else None
            put(hooks, owner, name, *more, **calls)
            if (ours := vars(owner).get(name)) is not own:
                self._placed.append((owner, name, ours))
                if isinstance(owner, type):
                    self._own.setdefault((owner, name), own)

        return knowing

    def give_back(self) -> None:
        """Have the classes call their own functions again."""
        for (owner, name), own in self._own.items():
            if own is None:
                delattr(owner, name)
            else:
                setattr(owner, name, own)

    def of(self, parts: Sequence[Any]) -> list[tuple[Any, str, Callable[..., Any]]]:
        """Parts of one engine, names of their functions, and ours to stand there."""
        return [
            each for owner, name, ours in self._placed for each in _at(owner, name, ours, parts)
        ]


def _at(
    owner: Any, name: str, ours: Callable[..., Any], parts: Sequence[Any]
) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    if not isinstance(owner, type):
        if any(owner is part for part in parts):
            yield owner, name, ours
        return
    for part in parts:
        if isinstance(part, owner) and not name.startswith("__"):
            first = next(kind for kind in type(part).__mro__ if name in vars(kind))
            if not issubclass(owner, first):
                raise TypeError(f"{first.__name__} has its own {name}, which calls the hooked one")
            yield part, name, MethodType(ours, part)


class Stepped(Protocol):
    """What is driven in turn with another of its kind that is given the same."""

    num_steps: int
    """Of a phase."""

    def begin(self) -> None:
        """Begin a phase."""

    def idle(self) -> None:
        """Step once without anybody who comes."""

    def at(self, place: int) -> float:
        """Seconds of a step, with who comes before it in this place of a phase."""

    def end(self) -> None:
        """Let all end that came in a phase: none of this is measured."""

    def parts(self) -> Sequence[Any]:
        """All whose functions ours may stand around."""


class Driven:
    """An engine and its requests; `came` counts them. Seconds are of the clock `now`."""

    def __init__(self, engine: Any, load: Load, now: Callable[[], float]) -> None:
        self.engine, self.load, self._now = engine, load, now
        self.num_steps = load.num_steps
        self.came, self._first_of_phase, self._num_done = 0, 0, 0
        self.scheduler = engine.engine_core.engine_core.scheduler
        self.fill()

    def fill(self) -> None:
        """Have those come that run all the time."""
        for number in range(self.load.num_running):
            self.add(30 + number % 16, MOST_TOKENS)
        for _ in range(12):
            self.idle()
        self._num_done = 12

    def add(self, length: int, max_tokens: int) -> None:
        from vllm import SamplingParams

        params = SamplingParams(max_tokens=max_tokens, temperature=0.0, ignore_eos=True)
        self.engine.add_request(f"{self.came:06}", words(length, self.came), params)
        self.came += 1

    def begin(self) -> None:
        """Begin a phase, with others where those who run all the time are about to end."""
        if self._num_done > MOST_TOKENS - 8 * self.load.num_steps:
            self.clear()
            self.fill()
        self._first_of_phase = self.came

    def idle(self) -> None:
        self.engine.step()
        self._num_done += 1

    def at(self, place: int) -> float:
        began = self._now()
        if self.load.every and place % self.load.every == 0:
            self.add(60 + place, 20)
        if self.load.burst and place % self.load.burst == 0:
            for number in range(32):
                self.add(20 + number * 7 % 90, 10 + number % 20)
        self.idle()
        return self._now() - began

    def end(self) -> None:
        if not self.load.room:  # nobody who came could run
            names = range(self._first_of_phase, self.came)
            self.engine.abort_request([f"{at:06}" for at in names])
        while len(self.engine.output_processor.request_states) > self.load.num_running:
            self.idle()

    def parts(self) -> Sequence[Any]:
        executor = self.engine.engine_core.engine_core.model_executor
        return [
            self.engine.engine_core, self.engine.output_processor,
            *parts_of_scheduler(self.scheduler), executor.driver_worker.worker.model_runner,
        ]  # fmt: skip

    def clear(self) -> None:
        self.engine.abort_request(list(self.engine.output_processor.external_req_ids))
        while self.engine.has_unfinished_requests():
            self.engine.step()

    def close(self) -> None:
        self.clear()
        self.engine.engine_core.shutdown()


class Pair:
    """Two that step in turn, and whichever of them has our functions."""

    def __init__(self, both: Sequence[Stepped], placed: Placed) -> None:
        placed.give_back()
        self.both = both
        self._ours = [placed.of(each.parts()) for each in both]
        self._num_phases = 0
        for ours in self._ours:
            _put_on(ours)

    def phase(self) -> list[tuple[float, float]]:
        """Seconds of each step in a phase, without our functions and with them."""
        recorded = self._num_phases % 2
        self._num_phases += 1
        for each in self.both:
            each.begin()
        _take_off(self._ours[1 - recorded])
        for each in self.both:
            for _ in range(WARM_UP):
                each.idle()
        taken = []
        for place in range(self.both[0].num_steps):
            took = [0.0, 0.0]
            for number in (0, 1) if place % 2 else (1, 0):
                took[number] = self.both[number].at(place)
            taken.append((took[1 - recorded], took[recorded]))
        for each in self.both:
            each.end()
        _put_on(self._ours[1 - recorded])
        return taken

    def phases(self, seconds: float) -> list[list[tuple[float, float]]]:
        """Those of so many seconds, an even number."""
        taken = []
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            taken += [self.phase(), self.phase()]
        return taken


def parts_of_scheduler(scheduler: Any) -> list[Any]:
    """Those of a scheduler of vLLM whose functions ours stand around."""
    manager = scheduler.kv_cache_manager
    return [scheduler, manager, manager.block_pool, *WaitingLine(scheduler).queues]


def _put_on(ours: Sequence[tuple[Any, str, Callable[..., Any]]]) -> None:
    for part, name, function in ours:
        setattr(part, name, function)


def _take_off(ours: Sequence[tuple[Any, str, Callable[..., Any]]]) -> None:
    for part, name, _ in ours:
        delattr(part, name)
