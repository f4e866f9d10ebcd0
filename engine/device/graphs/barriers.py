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

from collections.abc import Iterable, Sequence

from stepscope.engine.device.graphs.tasks import Region, Task, TaskGraph, shape_of

NO_BARRIER, BEFORE_MIX, AROUND_MIX = AUTHOR_BARRIERS = ("none", "before-mix", "around-mix")
# Which tasks have to be over before one of a shape.
_DRAINED = {
    NO_BARRIER: {},
    BEFORE_MIX: {"MIX": "AIV"},
    AROUND_MIX: {"MIX": "AIV", "AIV": "MIX"},
}


class SerializedGraph(TaskGraph):
    """A graph whose author puts a barrier between vector work and MIX tasks; see the module."""

    def __init__(self, first_id: int = 0, barriers: str = NO_BARRIER) -> None:
        super().__init__(first_id)
        self._drained = _DRAINED[barriers]
        self._since: dict[str, list[Task]] = {shape: [] for shape in self._drained.values()}
        self._barriers: dict[str, Task] = {}

    def submit(
        self,
        name: str,
        mask: int,
        durations_ns: Sequence[int],
        *,
        reads: Iterable[Region] = (),
        writes: Iterable[Region] = (),
        is_sync_start: bool = False,
        enabled: bool = True,
        heap_bytes: int = 0,
    ) -> Task:
        """Append a task as `TaskGraph` does, behind the barrier that its shape needs."""
        shape = shape_of(mask)
        drained = self._drained.get(shape)
        if drained and self._since[drained]:
            self._barriers[drained] = self._barrier(drained)
        task = super().submit(
            name, mask, durations_ns, reads=reads, writes=writes, is_sync_start=is_sync_start,
            enabled=enabled, heap_bytes=heap_bytes,
        )  # fmt: skip
        if drained and drained in self._barriers:
            self.order(self._barriers[drained], task, "barrier")
        if shape in self._since:
            self._since[shape].append(task)
        return task

    def _barrier(self, shape: str) -> Task:
        """A task without a kernel that waits for all of the shape so far."""
        barrier = super().submit(f"barrier behind {shape}", 0, [0])
        before = self._barriers.get(shape)
        for task in (*([before] if before else []), *self._since[shape]):
            self.order(task, barrier, "barrier")
        self._since[shape] = []
        return barrier
