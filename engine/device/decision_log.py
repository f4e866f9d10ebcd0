"""Why a task went where it went, or did not: the decisions that a run leaves behind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from stepscope.engine.device.admission import Admission
from stepscope.engine.device.events import EventLoop
from stepscope.engine.device.graphs.tasks import Task
from stepscope.engine.device.run_log import Decision, Run
from stepscope.engine.device.topology import Core, Device, Group, Part, Thread
from stepscope.engine.sites import Sites

SITES = Sites()
"""Those of all runs: each has a log of its own."""
GROUP, CORE, QUEUE = "core-group", "core", "queue"
BEHIND = "waits behind the first of its queue"


class _Short(NamedTuple):
    """What was looked at: cores with the first busy one, or the turn, and who goes first."""

    resource: str
    needed: int | None = None
    available: int | None = None
    busy: Core | None = None
    first: Task | None = None


class DecisionLog:
    """Writes decisions about tasks into `run`, at the loop's time.

    A MIX that is put back again by the same thread for the same reason is not news. Of a task on
    single cores it is news when what it waits for is another thing, a core or its turn, whichever
    thread finds it so; and when it first gets an idle core, and when it first gets a pending slot.
    Who is in its way changes with every block that ends, and is no news. Where it was decided is
    where the caller stands.
    """

    def __init__(self, device: Device, admission: Admission, loop: EventLoop, run: Run) -> None:
        self._device = device
        self._rule = admission.rule
        self._loop = loop
        self._run = run
        self._last: dict[tuple[int, int], tuple[str, str, Task | None]] = {}
        self._lacks: dict[Task, str] = {}
        self._given: set[tuple[Task, str]] = set()

    def admitted(self, thread: Thread, group: Group, task: Task) -> None:
        """A block got the group; where a core of it was busy, name a free group not tried."""
        needed = group.needed(task.mask)
        busy = _first_busy(needed)
        others = (other for other in self._device.groups if busy and other.is_free)
        instead = next((f"group {other.id}" for other in others), None)
        reason = f"group {group.id}: {self._rule}"
        self._last[thread.id, task.id] = ("admitted", reason, _on(busy))
        short = _Short(GROUP, len(needed), _num_idle(needed), busy)
        self._note(thread, task, "admitted", reason, short, instead)

    def put_back(self, thread: Thread, task: Task) -> None:
        """Blocks were left over; name the thread's group that came nearest."""
        group = max(thread.groups, key=lambda each: _num_idle(each.needed(task.mask)))
        needed = group.needed(task.mask)
        busy = _first_busy(needed)
        reason = f"group {group.id} came nearest; not met: {self._rule}"
        if self._is_put_back_anew(thread, task, reason, busy):
            short = _Short(GROUP, len(needed), _num_idle(needed), busy)
            self._note(thread, task, "put-back", reason, short)

    def given(self, thread: Thread, task: Task, num_wanted: int, parts: Sequence[Part]) -> None:
        """Of the `num_wanted` blocks left of a task on single cores, those of `parts` got cores."""
        core, slot = parts[0].core, parts[0].slot
        if (task, slot) in self._given:
            return
        self._given.add((task, slot))
        is_idle = slot == "running"
        where = "an idle" if is_idle else "a pending slot, behind a busy"
        short = _Short(CORE, num_wanted, len(parts), None if is_idle else core)
        self._note(thread, task, "admitted", f"{where} {task.shape}", short)

    def out_of_cores(self, thread: Thread, queue: Sequence[Task], why: str) -> None:
        """The first of a queue has blocks left, for which the thread has no core.

        Of one that starts together the cores of all threads are asked, and not here.
        """
        first = queue[0]
        if first.is_sync_start:
            return
        if self._waits_anew(first, CORE):
            cores = thread.aics if first.shape == "AIC" else thread.aivs
            short = _Short(CORE, first.blocks_left, 0, _first_busy(cores))
            self._note(thread, first, "deferred", why, short)
        for task in self._all_anew(queue, BEHIND):
            self._note(thread, task, "deferred", BEHIND, _Short(QUEUE, first=first))

    def held_back(self, thread: Thread, queue: Sequence[Task], first: Task, why: str) -> None:
        """Tasks on single cores were not looked at: `first`, of another queue, goes first."""
        for task in self._all_anew(queue, why):
            self._note(thread, task, "deferred", why, _Short(QUEUE, first=first))

    def too_few(self, thread: Thread, task: Task, num_found: int) -> None:
        """Not all blocks of a task that starts together found cores; `num_found` cores were."""
        num_needed = task.num_blocks * task.mask.bit_count()
        reason = f"{task.num_blocks} blocks start together or not at all"
        busy = _first_busy(core for core in self._device.cores if core.role & task.mask)
        if task.shape != "MIX":
            if self._waits_anew(task, CORE):
                short = _Short(CORE, num_needed, num_found, busy)
                self._note(thread, task, "deferred", reason, short)
        elif self._is_put_back_anew(thread, task, reason, busy):
            self._note(thread, task, "put-back", reason, _Short(GROUP, num_needed, num_found, busy))

    def mark(self) -> int:
        """Where the log stands, for `forget_since`."""
        return len(self._run.decisions)

    def forget_since(self, mark: int) -> None:
        """Take back what was noted about an attempt that came to nothing."""
        del self._run.decisions[mark:]

    def _is_put_back_anew(self, thread: Thread, task: Task, reason: str, busy: Core | None) -> bool:
        news = ("put-back", reason, _on(busy))
        is_anew = self._last.get((thread.id, task.id)) != news
        self._last[thread.id, task.id] = news
        return is_anew

    def _waits_anew(self, task: Task, what: str) -> bool:
        is_anew = self._lacks.get(task) != what
        self._lacks[task] = what
        return is_anew

    def _all_anew(self, queue: Sequence[Task], what: str) -> list[Task]:
        """Those at the end of a queue for whom it is news that they wait for `what`.

        Queues are FIFO, and who waits for something is told together: all that came before one who
        was told wait for the same. The first, where that one lacks a core, does not wait for it.
        """
        lacks = self._lacks
        found: list[Task] = []
        for task in reversed(queue):
            now = lacks.get(task)
            if now == what or (what is BEHIND and task is queue[0]):
                break
            lacks[task] = what
            found.append(task)
        return found[::-1]

    def _note(
        self,
        thread: Thread,
        task: Task,
        verdict: str,
        reason: str,
        short: _Short,
        instead: str | None = None,
    ) -> None:
        busy = short.busy
        self._run.decisions.append(
            Decision(
                self._loop.now_ns, task, verdict, reason, short.resource, short.needed,
                short.available, _on(busy) or short.first, busy.id if busy else None, instead,
                thread.id, SITES.of_callers(2),
            )
        )  # fmt: skip


class SilentLog(DecisionLog):
    """Is told the same and writes nothing: where nobody records, decisions cost nothing."""

    def admitted(self, thread: Thread, group: Group, task: Task) -> None:
        """Write nothing."""

    def put_back(self, thread: Thread, task: Task) -> None:
        """Write nothing."""

    def given(self, thread: Thread, task: Task, num_wanted: int, parts: Sequence[Part]) -> None:
        """Write nothing."""

    def out_of_cores(self, thread: Thread, queue: Sequence[Task], why: str) -> None:
        """Write nothing."""

    def held_back(self, thread: Thread, queue: Sequence[Task], first: Task, why: str) -> None:
        """Write nothing."""

    def too_few(self, thread: Thread, task: Task, num_found: int) -> None:
        """Write nothing."""


def _num_idle(cores: Iterable[Core]) -> int:
    return sum(core.is_idle for core in cores)


def _first_busy(cores: Iterable[Core]) -> Core | None:
    return next((core for core in cores if core.claims), None)


def _on(busy: Core | None) -> Task | None:
    """The task of which the first block given to a core has not been seen to end."""
    return busy.claims[0].task if busy else None
