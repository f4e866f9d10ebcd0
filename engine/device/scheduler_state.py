"""The tasks that could run, in the order in which the threads look at them, and what those do.

Queues are FIFO, one per shape; `DUMMY` has those that are retired where they stand. A task that
stops the world until there is room for all of its blocks stands alone, in `sync-start`.

What becomes of the order is told by exception. A task stands behind all that came before it, and of
those that come in one instant the one with the lower number goes first; where that is not so at the
end of an instant, as a MIX that a thread puts back goes to the tail, the queue is listed from the
first place on at which another task stands. Of what a thread does there is a row when it begins to
do something else (docs/decisions/0064).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from stepscope.engine.device.events import EventLoop
from stepscope.engine.device.graphs.tasks import UNKNOWN, Task
from stepscope.engine.device.run_log import Began, Listed, Run

DUMMY, MIX, SYNC_START = "DUMMY", "MIX", "sync-start"
ORCHESTRATOR = None
"""The thread that submits, among those that poll and dispatch."""


class ReadyQueues:
    """Who is ready, by queue; `draining` is the task that stops the world.

    Writes into `run` where the order is not that of who came first, unless `is_told` is off.
    """

    def __init__(self, loop: EventLoop, run: Run, *, is_told: bool = True) -> None:
        self.of: dict[str, deque[Task]] = {s: deque() for s in (DUMMY, MIX, "AIC", "AIV")}
        self.draining: Task | None = None
        self._loop = loop
        self._run = run
        self._is_told = is_told
        self._came: list[Task] = []
        self._order: list[Task] = []
        self._is_mix_touched = False
        self._told_draining: Task | None = None

    def put(self, task: Task, queue: str) -> None:
        """Let a task stand at the end of a queue, for the first time."""
        task.queue, task.queued_ns = queue, self._loop.now_ns
        self.of[queue].append(task)
        self._came.append(task)
        self._is_mix_touched |= queue == MIX
        self._loop.changed()

    def put_back(self, task: Task) -> None:
        """Let a MIX that was looked at stand at the end again."""
        self.of[MIX].append(task)
        self._is_mix_touched = True
        self._loop.changed()

    def leave(self, task: Task) -> None:
        """A task that was taken from its queue does not come back."""
        task.dequeued_ns = self._loop.now_ns
        if task is self.draining:
            self.draining = None
        self._loop.changed()

    def drain_for(self, task: Task) -> None:
        """Let a task that was taken from its queue stop the world."""
        self.draining = task
        self._is_mix_touched |= task.shape == MIX
        self._loop.changed()

    def snapshot(self) -> dict[str, list[int]]:
        """Return the numbers of the tasks in each queue that has any, in its order."""
        alone = [self.draining] if self.draining else []
        every = {**self.of, SYNC_START: alone}
        return {queue: [task.id for task in held] for queue, held in every.items() if held}

    def end_instant(self) -> None:
        """Write down where the order is not the one in which tasks came, now that all have."""
        if self._is_told:
            for queue in {task.queue for task in self._came} - {MIX}:
                came = self._came_to(queue)
                self._tell(queue, came, sorted(came, key=_number))
            if self._is_mix_touched:
                held = [task for task in self._order if self._waits(task)]
                self._order = [*self.of[MIX]]
                self._tell(MIX, self._order, held + sorted(self._came_to(MIX), key=_number))
            if self.draining and self.draining is not self._told_draining:
                self._list(SYNC_START, 0, [self.draining])
        self._told_draining = self.draining
        self._is_mix_touched = False
        self._came.clear()

    def _came_to(self, queue: str | None) -> list[Task]:
        return [task for task in self._came if task.queue == queue and self._waits(task)]

    def _waits(self, task: Task) -> bool:
        """Whether it still stands where it came to, rather than alone."""
        return task.dequeued_ns == UNKNOWN and task is not self.draining

    def _tell(self, queue: str | None, found: Sequence[Task], expected: Sequence[Task]) -> None:
        same = _num_same(found, expected)
        if queue and same < len(found):
            ahead = len(self.of[queue]) - len(found)
            self._list(queue, ahead + same, found[same:])

    def _list(self, queue: str, first: int, tasks: Sequence[Task]) -> None:
        now_ns = self._loop.now_ns
        self._run.listed += [
            Listed(now_ns, queue, place, task.id) for place, task in enumerate(tasks, first)
        ]


class Phases:
    """What each thread does, and since when; a row of `run` for each change unless not `is_told`.

    Once the graph is over, all that threads do is `exit`.
    """

    def __init__(self, loop: EventLoop, run: Run, *, is_told: bool = True) -> None:
        self._now: dict[int | None, Began] = {}
        self._loop = loop
        self._run = run
        self._is_told = is_told
        self._is_over = False

    def begin(self, thread: int | None, phase: str) -> None:
        """Note what a thread does from now on; it may go on with what it did."""
        before = self._now.get(thread)
        if self._is_over or (before and before.phase == phase):
            return
        now_ns = self._loop.now_ns
        began = self._now[thread] = Began(now_ns, thread, phase)
        if self._is_told:
            self._run.phases.append(began)
        self._loop.changed()

    def end_all(self) -> None:
        """The graph is over, or given up: whatever its threads were about, they leave it."""
        for thread in self._now:
            self.begin(thread, "exit")
        self._is_over = True

    def snapshot(self) -> dict[str, list[object]]:
        """Return by thread what it does and since when."""
        return {
            "orchestrator" if thread is ORCHESTRATOR else f"thread {thread}": [
                each.phase,
                each.ts_ns,
            ]
            for thread, each in self._now.items()
        }


def _num_same(found: Sequence[Task], expected: Sequence[Task]) -> int:
    pairs = zip(found, expected, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one is not other),
                min(len(found), len(expected)))  # fmt: skip


def _number(task: Task) -> int:
    return task.id
