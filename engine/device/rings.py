"""The rings that bound how far the orchestrator runs ahead of the device.

Every submitted task holds a task slot, its output buffers in the heap, and a dependency entry per
predecessor, until it is reclaimed. Each of the three is a ring of its own, and all move together,
oldest task first: a task that retired early gives nothing back before all older ones have. While a
ring is full the orchestrator waits: back-pressure.

A task of a *scope* is referred to until its scope has ended, which is when all of its tasks have
been submitted. When the oldest task belongs to the very scope that is being submitted, a full ring
stays full whatever retires: a deadlock of structure, known at once and told apart from 500 ms
without progress.

Fault `lost-ring-advance`: the rings move on by the task that retired, and not past those that had
retired before it. The next oldest has then retired already, so nobody moves the rings again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from stepscope.engine.device.graphs.tasks import Task
from stepscope.ingest.errors import ConfigError


@dataclass(slots=True)
class Ring:
    """`size` units of something, claimed in order and given back in the same order.

    A claim that `is_contiguous` does not go round the end: what is left there is skipped and
    counts as held.
    """

    unit: str
    size: int
    is_contiguous: bool = False
    held: int = field(default=0, init=False)
    _head: int = field(default=0, init=False)
    _claims: deque[int] = field(default_factory=deque, init=False)

    def has_room(self, amount: int) -> bool:
        """Whether `amount` units can be claimed now."""
        return self.held + self._with_skip(amount) <= self.size

    def claim(self, amount: int) -> int:
        """Take `amount` units at the head; return how many are held for that."""
        taken = self._with_skip(amount)
        self.held += taken
        self._head = (self._head + taken) % max(1, self.size)
        self._claims.append(taken)
        return taken

    def give_back(self) -> None:
        """Let go of the oldest claim; an empty ring begins again at its start."""
        self.held -= self._claims.popleft()
        if not self.held:
            self._head = 0

    def _with_skip(self, amount: int) -> int:
        left = self.size - self._head
        return amount + left if self.is_contiguous and amount > left else amount


@dataclass(frozen=True, slots=True)
class RingSizes:
    """How much the rings hold; the defaults are the runtime's."""

    num_slots: int = 16384
    num_heap_bytes: int = 256 << 20
    num_entries: int = 16384


class Rings:
    """Task slots, heap bytes and dependency entries of a runtime, reclaimed in order.

    `given_back` are the tasks that hold nothing any more, for who wants to know when that was.
    """

    def __init__(self, sizes: RingSizes | None = None, *, loses_advance: bool = False) -> None:
        sizes = sizes or RingSizes()
        self.slots = Ring("task slots", sizes.num_slots)
        self.heap = Ring("heap bytes", sizes.num_heap_bytes, is_contiguous=True)
        self.entries = Ring("dependency entries", sizes.num_entries)
        self._loses_advance = loses_advance
        self._live: deque[Task] = deque()
        self.given_back: list[Task] = []
        self._open_scope: int | None = None

    def enter(self, scope: int | None) -> None:
        """Submit tasks of that scope from here on; the scope before it has ended."""
        self._open_scope = scope
        if not self._loses_advance:
            self._advance()

    def is_short_of(self, task: Task) -> Ring | None:
        """Return the first ring that has no room for the task now, None when it can be submitted.

        Raises ConfigError when even empty rings have none: no waiting makes them larger.
        """
        for ring, amount in self._needs(task):
            if amount > ring.size:
                raise ConfigError(
                    f"task {task.name!r} needs {amount} {ring.unit} and there are {ring.size}",
                    todo="make the ring larger, or split the task",
                )
        needs = self._needs(task)
        return next((ring for ring, amount in needs if not ring.has_room(amount)), None)

    @property
    def is_deadlocked(self) -> bool:
        """Whether a ring that is short stays so: its oldest task is held by the open scope."""
        return self._open_scope is not None and self._live[0].scope == self._open_scope

    def claim(self, task: Task) -> None:
        """Take what the task needs."""
        self._live.append(task)
        self.slots.claim(1)
        task.heap_held = self.heap.claim(task.heap_bytes)
        self.entries.claim(len(task.predecessors))

    def reclaim(self, retired: Task) -> bool:
        """Give back what the oldest tasks hold, up to the first that is not over."""
        if self._loses_advance:
            is_oldest = self._live[0] is retired and self._is_over(retired)
            return is_oldest and self._give_back()
        return self._advance()

    def _advance(self) -> bool:
        has_advanced = False
        while self._live and self._is_over(self._live[0]):
            has_advanced = self._give_back()
        return has_advanced

    def _is_over(self, task: Task) -> bool:
        is_referred_to = task.scope is not None and task.scope == self._open_scope
        return task.outcome != "pending" and not is_referred_to

    def _give_back(self) -> bool:
        self.given_back.append(self._live.popleft())
        for ring in (self.slots, self.heap, self.entries):
            ring.give_back()
        return True

    def _needs(self, task: Task) -> tuple[tuple[Ring, int], ...]:
        return (
            (self.slots, 1),
            (self.heap, task.heap_bytes),
            (self.entries, len(task.predecessors)),
        )
