"""The waiting queue and the running requests at any time, folded from `lifecycle`."""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter

import numpy as np
import polars as pl

QUEUEING = frozenset({"arrive", "preempt", "defer"})
STARTING = frozenset({"admit", "resume"})
ENDING = frozenset({"finish", "reject", "abort"})
KEYFRAME_EVERY = 1024

Queue = tuple[str, ...]


class Queues:
    """Folds events in the order of their times; keeps keyframes, so that a jump is a short fold.

    A request enters the waiting queue at the event's `queue_index` (at its end where an arrival or
    a preemption does not say), and leaves it when it is admitted, resumed or ended. Keyframes lie
    further apart where queues are long: together they hold at most four ids an event.
    """

    def __init__(self, lifecycle: pl.DataFrame) -> None:
        """Take the rows of one rank, as recorded."""
        events = lifecycle.sort("ts_ns", maintain_order=True)
        self._ts_ns = events["ts_ns"].to_numpy()
        self._events = events.select("request", "event", "queue_index").rows()
        self._keyframes: list[tuple[int, Queue, Queue]] = [(0, (), ())]
        self._last = self._keyframes[0]

    def at(self, ts_ns: int) -> tuple[Queue, Queue]:
        """Waiting and running after every event up to and at `ts_ns`."""
        wanted = int(np.searchsorted(self._ts_ns, ts_ns, "right"))
        if self._last[0] != wanted:
            self._last = (wanted, *self._fold(wanted))
        return self._last[1:]

    def _fold(self, wanted: int) -> tuple[Queue, Queue]:
        place = bisect_right(self._keyframes, wanted, key=itemgetter(0)) - 1
        first, was_waiting, was_running = self._keyframes[place]
        waiting, running = list(was_waiting), dict.fromkeys(was_running)
        for number in range(first, wanted):
            self._apply(number, waiting, running)
            self._keep(number + 1, waiting, running)
        return tuple(waiting), tuple(running)

    def _apply(self, number: int, waiting: list[str], running: dict[str, None]) -> None:
        request, event, index = self._events[number]
        if event in STARTING or event in ENDING:
            _take_out(waiting, request)
        if event in STARTING:
            running[request] = None
        elif event in ENDING:
            running.pop(request, None)
        elif event in QUEUEING and not (event == "defer" and index is None):
            running.pop(request, None)
            _take_out(waiting, request)
            waiting.insert(len(waiting) if index is None else index, request)

    def _keep(self, number: int, waiting: list[str], running: dict[str, None]) -> None:
        last = self._keyframes[-1][0]
        if number - last >= max(KEYFRAME_EVERY, (len(waiting) + len(running)) // 4):
            self._keyframes.append((number, tuple(waiting), tuple(running)))


def _take_out(waiting: list[str], request: str) -> None:
    if request in waiting:
        waiting.remove(request)
