"""Virtual time: a heap of events, and processes written as generators that wait by yielding.

A process yields how many nanoseconds it takes before it goes on, or `ASLEEP` to sleep until it is
woken. Events of one instant run in the order ends, starts, processes; then in the order in which
they were posted, so a run is the same every time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

END, START, RESUME = 0, 1, 2
ASLEEP = None
Steps = Generator[int | None, None, None]


@dataclass(slots=True, eq=False)
class Process:
    """A generator under way; `is_asleep` while it waits to be woken."""

    steps: Steps
    is_asleep: bool = False


class EventLoop:
    """Runs events in the order of virtual time, from `start_ns` on."""

    def __init__(self, start_ns: int = 0) -> None:
        self.now_ns = start_ns
        self._heap: list[tuple[int, int, int, Callable[[Any], None], Any]] = []
        self._posted = 0
        self._has_changed = False

    def post(self, at_ns: int, rank: int, action: Callable[[Any], None], subject: Any) -> None:
        """Call `action(subject)` at `at_ns`."""
        self._posted += 1
        heapq.heappush(self._heap, (at_ns, rank, self._posted, action, subject))

    def spawn(self, steps: Steps) -> Process:
        """Start a process now."""
        process = Process(steps)
        self.post(self.now_ns, RESUME, self._resume, process)
        return process

    def wake(self, process: Process) -> None:
        """Let a process that is asleep go on now; one that is not is left alone."""
        if process.is_asleep:
            process.is_asleep = False
            self.post(self.now_ns, RESUME, self._resume, process)

    def changed(self) -> None:
        """Say that what can be observed has changed in this instant."""
        self._has_changed = True

    def run(self, is_over: Callable[[], bool], observer: Callable[[int], None] | None) -> None:
        """Run until `is_over()` or nothing is left to happen.

        `observer(now_ns)` is called at the end of every instant in which something changed.
        """
        heap = self._heap
        while heap and not is_over():
            self.now_ns, _, _, action, subject = heapq.heappop(heap)
            action(subject)
            if self._has_changed and (not heap or heap[0][0] > self.now_ns):
                self._has_changed = False
                if observer:
                    observer(self.now_ns)

    def _resume(self, process: Process) -> None:
        try:
            cost_ns = next(process.steps)
        except StopIteration:
            return
        if cost_ns is None:
            process.is_asleep = True
        else:
            self.post(self.now_ns + cost_ns, RESUME, self._resume, process)
