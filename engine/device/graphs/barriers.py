"""Barriers in the author's own graph: the report's first way round, tried without the scheduler.

A kernel author who knows that the scheduler does not look at AIVs can see to it that none is busy:
a barrier, which is a task without a kernel, waits for vector work, and a MIX waits for the barrier.

- `before-mix`: every MIX waits for the AIV-only tasks that were submitted before it. That is what
  the report names. Vector work that is submitted later may still run when the MIX becomes ready.
- `around-mix`: AIV-only tasks wait for the MIX tasks before them as well. Now nothing is left to
  the scheduler, and nothing of the two overlaps.

An author knows the order in which tasks are submitted, and not which of them will run together: two
micro-batches that have nothing to do with each other wait for each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stepscope.engine.device.graphs.tasks import Task, TaskGraph
from stepscope.engine.named import named


@dataclass(frozen=True, slots=True)
class AuthorBarriers:
    """Barriers by the name that `--set author_barriers` takes.

    Before a task of a shape all those of the shape that is its `drained` have to be over.
    """

    name: str
    drained: Mapping[str, str] = field(default_factory=dict)


NO_BARRIER = AuthorBarriers("none")
AUTHOR_BARRIERS = (
    NO_BARRIER,
    AuthorBarriers("before-mix", {"MIX": "AIV"}),
    AuthorBarriers("around-mix", {"MIX": "AIV", "AIV": "MIX"}),
)


def author_barriers(name: str) -> AuthorBarriers:
    """Return the barriers of that name; ConfigError naming all of them for any other."""
    return named(name, AUTHOR_BARRIERS, "barrier of the author")


class SerializedGraph(TaskGraph):
    """A graph whose author puts a barrier between vector work and MIX tasks; see the module."""

    def __init__(self, first_id: int = 0, barriers: AuthorBarriers = NO_BARRIER) -> None:
        super().__init__(first_id)
        self._drained = barriers.drained
        self._since: dict[str, list[Task]] = {shape: [] for shape in self._drained.values()}
        self._barriers: dict[str, Task] = {}

    def _barrier_before(self, shape: str) -> Task | None:
        """The barrier behind all of the shape that has to be over; a new one if there are more."""
        drained = self._drained.get(shape)
        if drained is None:
            return None
        if self._since[drained]:
            self._barriers[drained] = self._barrier(drained)
        return self._barriers.get(drained)

    def _submitted(self, task: Task) -> None:
        if task.shape in self._since:
            self._since[task.shape].append(task)

    def _barrier(self, shape: str) -> Task:
        """A task without a kernel that waits for all of the shape so far."""
        barrier = self.submit(f"barrier behind {shape}", 0, [0])
        before = self._barriers.get(shape)
        for task in (*([before] if before else []), *self._since[shape]):
            self.order(task, barrier, "barrier")
        self._since[shape] = []
        return barrier
