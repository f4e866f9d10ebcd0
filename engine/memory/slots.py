"""A fixed number of slots, one request each."""

from __future__ import annotations

from heapq import heapify, heappop, heappush


class Slots:
    """`num_slots` slots, each free or owned by one request; the lowest free one goes first."""

    def __init__(self, num_slots: int) -> None:
        self.num_slots = num_slots
        self.owner: dict[int, str] = {}
        self.generation = [0] * num_slots
        self._free = list(range(num_slots))
        heapify(self._free)

    @property
    def num_free(self) -> int:
        """Slots that nobody owns."""
        return len(self._free)

    def claim(self, request_id: str) -> tuple[int, int]:
        """Give the lowest free slot to a request; return it and how often it had been claimed."""
        slot = heappop(self._free)
        generation = self.generation[slot]
        self.generation[slot] = generation + 1
        self.owner[slot] = request_id
        return slot, generation

    def release(self, slot: int) -> int:
        """Take a slot back; return how often it had been claimed before this owner."""
        del self.owner[slot]
        heappush(self._free, slot)
        return self.generation[slot] - 1
