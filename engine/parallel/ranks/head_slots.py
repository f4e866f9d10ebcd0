"""Which slot of the head holds each request, and what the workers are told when that changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.engine.parallel.rank_config import ParallelConfig
from stepscope.engine.parallel.ranks.head import Head

if TYPE_CHECKING:
    from stepscope.engine.batch import Batch
    from stepscope.engine.clock import Clock
    from stepscope.ingest.recorder import Recorder

NO_SLOT = (1 << 64) - 1  # a mark for `no slot`, as an unsigned 64-bit number has it


class Placement:
    """The slots of requests: those that the engine gave them, and nobody is ever moved.

    Under v2 a slot is what head and workers both know a sequence by, and it is freed when its
    sequence has ended. Two faults touch it: a head that compacts its slots then moves the last one
    behind the workers' backs, and frees where that was; and one that marks an ended request with
    `NO_SLOT` sends that mark's low 32 bits as a slot.
    """

    def __init__(self, head: Head, config: ParallelConfig) -> None:
        self._head = head
        self._slots: dict[str, int] = {}
        self._used: set[int] = set()
        self._frees = config.head_version > 1
        self._compacts = "compaction-on-one-side" in config.faults
        self._marks = "sentinel-as-slot" in config.faults

    def __getitem__(self, request_id: str) -> int:
        return self._slots[request_id]

    def update(self, batch: Batch, step: int, clock: Clock, recorder: Recorder | None) -> None:
        """Let go of requests that have ended, and give new ones their slots."""
        live = {row.request.id for row in batch.rows}
        for request_id in [each for each in self._slots if each not in live]:
            freed = self._slots.pop(request_id)
            if self._compacts:
                freed = self._compacted(freed, step, clock, recorder)
            if self._frees:
                self._head.free(freed, named=NO_SLOT if self._marks else None)
        for row in batch.rows:
            if row.request.id not in self._slots:
                self._admit(row.request.id, row.request.slot)

    def _admit(self, request_id: str, given: int | None) -> None:
        assert given is not None, "the engine gives a slot to whom it admits"
        taken = set(self._slots.values())
        slot = min(set(range(len(taken) + 1)) - taken) if self._compacts else given
        if slot in self._used:
            self._head.allocate(slot)
        self._used.add(slot)
        self._slots[request_id] = slot

    def _compacted(self, freed: int, step: int, clock: Clock, recorder: Recorder | None) -> int:
        """Fill a slot that came free with the last one that is not; return which is free now."""
        last_id = max(self._slots, key=self._slots.__getitem__, default=None)
        if last_id is None or self._slots[last_id] < freed:
            return freed
        last = self._slots[last_id]
        self._head.share.move(last, freed)
        self._slots[last_id] = freed
        if recorder:
            recorder.allocations(step, clock.now_ns(), "slot", freed, "move", last_id, source=last)
        return last
