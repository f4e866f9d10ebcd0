"""The rings that bound how far the orchestrator runs ahead of the device.

Every submitted task holds a task slot, and a dependency entry per predecessor, until it is
reclaimed. Reclaim is in order: a task that retired early gives nothing back before all older tasks
have retired. While a ring is full the orchestrator waits: back-pressure.

Fault `lost-ring-advance`: the ring moves on by the task that retired, and not past those that had
retired before it. The next oldest has then retired already, so nobody moves the ring again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from stepscope.engine.device.tasks import Task
from stepscope.ingest.errors import ConfigError


@dataclass(slots=True)
class Rings:
    """Task slots and dependency entries of a runtime, with in-order reclaim."""

    num_slots: int = 16384
    num_entries: int = 16384
    loses_advance: bool = False
    entries_held: int = field(default=0, init=False)
    _live: deque[Task] = field(default_factory=deque, init=False)

    @property
    def slots_held(self) -> int:
        """Tasks submitted and not reclaimed."""
        return len(self._live)

    def has_room(self, task: Task) -> bool:
        """Whether the task can be submitted now.

        Raises ConfigError when it could not be submitted even to empty rings: a deadlock of
        structure, which no waiting resolves.
        """
        entries = len(task.predecessors)
        if self.num_slots < 1 or entries > self.num_entries:
            raise ConfigError(
                f"task {task.name!r} needs {entries} dependency entries and a task slot; the "
                f"rings hold {self.num_entries} and {self.num_slots}",
                todo="make the rings larger, or split the task",
            )
        return len(self._live) < self.num_slots and self.entries_held + entries <= self.num_entries

    def claim(self, task: Task) -> None:
        """Take the task's slot and entries."""
        self._live.append(task)
        self.entries_held += len(task.predecessors)

    def reclaim(self, retired: Task) -> bool:
        """Give back what the oldest tasks hold, up to the first that has not retired."""
        if self.loses_advance:
            return self._live[0] is retired and self._advance()
        has_advanced = False
        while self._live and self._live[0].outcome != "pending":
            has_advanced = self._advance()
        return has_advanced

    def _advance(self) -> bool:
        self.entries_held -= len(self._live.popleft().predecessors)
        return True
