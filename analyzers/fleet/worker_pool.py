"""Workers on this machine: some processes, each of which does one task at a time.

A worker that dies takes its task alone with it, which is told, and another one is started. A task
that takes too long is ended with its worker.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Protocol

import msgspec

from stepscope.analyzers.fleet.messages import Answer, Died, Task, answer_of, encoded
from stepscope.analyzers.fleet.worker_loop import LENGTH_BYTES, READY, framed
from stepscope.analyzers.fleet.worker_loop import NAME as WORKER
from stepscope.ingest.errors import StepscopeError

MOST_STARTS = 20
"""So many workers in a row that end before they are ready: there is something wrong with all."""
READ_BYTES = 1 << 20
ONE_THREAD = {"POLARS_MAX_THREADS": "1"}
"""Workers share the cores, and sums of fractions are the same on however many there are."""
Told = list[tuple[int, Answer]]


class Pool(Protocol):
    """Whatever does tasks; each has a ticket, by which its answer is known."""

    def room(self) -> int:
        """How many more tasks it is worth to hand in."""

    def submit(self, ticket: int, task: Task) -> None:
        """Hand in a task; it is begun sooner or later."""

    def wait(self, seconds: float) -> Told:
        """Give what was answered, or nothing after so many seconds; raises StepscopeError."""

    def close(self) -> None:
        """End it, with whatever is under way."""


@dataclass(slots=True, eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    ticket: int | None = None
    since_s: float = 0.0
    is_ready: bool = False
    is_late: bool = False
    came: bytearray = field(default_factory=bytearray)

    @property
    def stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def messages(self) -> Iterator[bytes]:
        """What has come whole."""
        while len(self.came) >= LENGTH_BYTES:
            end = LENGTH_BYTES + int.from_bytes(self.came[:LENGTH_BYTES])
            if len(self.came) < end:
                return
            yield bytes(self.came[LENGTH_BYTES:end])
            del self.came[:end]


class WorkerPool:
    """So many workers; `timeout_s` is the most that a task may take."""

    def __init__(
        self, num_workers: int, timeout_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._num_workers, self._timeout_s, self._clock = num_workers, timeout_s, clock
        self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []
        self._waiting: list[tuple[int, Task]] = []
        self._died_early = 0

    def room(self) -> int:
        """As many as there are workers, so that none waits for its next task."""
        num_busy = sum(worker.ticket is not None for worker in self._workers)
        return 2 * self._num_workers - num_busy - len(self._waiting)

    def submit(self, ticket: int, task: Task) -> None:
        """Hand in a task, to the next worker that is free."""
        self._waiting.append((ticket, task))
        self._hand_out()

    def wait(self, seconds: float) -> Told:
        """Give what was answered meanwhile, deaths of workers among it."""
        told: Told = []
        ends_s = self._clock() + seconds
        while not told and (left := ends_s - self._clock()) > 0:
            self._end_late()
            for key, _ in self._selector.select(min(left, 0.5)):
                told += self._heard(key.data)
            self._hand_out()
        return told

    def process_ids(self) -> list[int]:
        """The workers that there are."""
        return [worker.process.pid for worker in self._workers]

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.wait()
            self._closed(worker)
        self._workers.clear()
        self._selector.close()

    def _hand_out(self) -> None:
        wanted = min(self._num_workers, len(self._waiting) + self._num_busy())
        while len(self._workers) < wanted:
            self._start()
        for worker in self._workers:
            if not self._waiting:
                return
            is_free = worker.is_ready and worker.ticket is None
            if is_free and worker.process.poll() is None:
                worker.ticket, task = self._waiting.pop(0)
                worker.since_s = self._clock()
                with suppress(OSError):  # it has died, which is heard as its stdout ends
                    worker.stdin.write(framed(encoded(task)))
                    worker.stdin.flush()

    def _num_busy(self) -> int:
        return sum(worker.ticket is not None for worker in self._workers)

    def _start(self) -> None:
        process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-P", "-m", WORKER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            bufsize=0, start_new_session=True,  # Ctrl-C is of who started them
            env={**os.environ, **ONE_THREAD},
        )  # fmt: skip
        worker = _Worker(process)
        self._workers.append(worker)
        self._selector.register(worker.stdout, selectors.EVENT_READ, worker)

    def _heard(self, worker: _Worker) -> Told:
        """What a worker has said, or that it said nothing more."""
        came = worker.stdout.read(READ_BYTES)
        worker.came += came or b""
        told: Told = []
        for message in worker.messages():
            if message == READY:
                worker.is_ready, self._died_early = True, 0
                continue
            ticket = worker.ticket
            assert ticket is not None, "a worker answers what it is asked"
            told.append((ticket, _answer(message)))
            worker.ticket = None
        return told if came else told + self._buried(worker)

    def _buried(self, worker: _Worker) -> Told:
        self._selector.unregister(worker.stdout)
        self._workers.remove(worker)
        worker.process.kill()
        code = worker.process.wait()
        self._closed(worker)
        if not worker.is_ready:
            self._died_early += 1
            if self._died_early >= MOST_STARTS:
                what = f"no worker starts: {MOST_STARTS} in a row {ended(code)}"
                raise StepscopeError(what, todo=f"see what says: {sys.executable} -m {WORKER}")
        if worker.ticket is None:
            return []
        how = f"took longer than {self._timeout_s:g} s" if worker.is_late else ended(code)
        return [(worker.ticket, Died(how, is_final=worker.is_late))]

    def _end_late(self) -> None:
        now_s = self._clock()
        for worker in self._workers:
            if worker.ticket is not None and now_s - worker.since_s > self._timeout_s:
                worker.is_late = True
                worker.process.kill()

    @staticmethod
    def _closed(worker: _Worker) -> None:
        for stream in (worker.stdin, worker.stdout):
            with suppress(OSError):
                stream.close()


def _answer(message: bytes) -> Answer:
    try:
        return answer_of(message)
    except msgspec.MsgspecError as error:
        return Died(f"answered what is no answer: {error}")


def ended(code: int) -> str:
    """How a process ended, by its exit code."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    perhaps = ", perhaps for want of memory" if name == "SIGKILL" else ""
    return f"was ended by {name}{perhaps}"
