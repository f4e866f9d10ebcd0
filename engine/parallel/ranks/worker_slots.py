"""A worker's slots: which of its own it holds for each slot that the head names."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.engine.memory.slots import Slots
from stepscope.engine.parallel.protocol import FREE, ProtocolError

IN_ANOTHER_ORDER = frozenset({"slot-order-differs", "slot-order-refused"})
Note = Callable[[int, str, str, int], None]  # slot, op, owner, generation


class WorkerSlots:
    """Slots claimed up front, lowest first, as the head claims them: the same number means both.

    A worker knows of no requests: what owns a slot is the head's number for it, `slot 2`. Where the
    two numbers differ, or the head names a slot that nobody has, the worker refuses to go on.
    """

    def __init__(self, num_slots: int, note: Note, faults: frozenset[str] = frozenset()) -> None:
        self._pool = Slots(num_slots)
        self._own: dict[int, int] = {}
        self._note = note
        self._has_to_agree = "slot-order-differs" not in faults
        asked = range(1 if "slots-not-allocated" in faults else num_slots)
        for slot in reversed(asked) if faults & IN_ANOTHER_ORDER else asked:
            self.allocate(slot)

    @property
    def owner(self) -> dict[int, str]:
        """Who has each slot of the worker's own that is taken."""
        return dict(self._pool.owner)

    def allocate(self, slot: int) -> int:
        """Free who has the slot, if anybody, and give it to a new one; return the worker's own."""
        self._check_range(slot)
        owner = f"slot {slot}"
        if slot in self._own:
            self.free(slot)
        own, generation = self._pool.claim(owner)
        self._note(own, "claim", owner, generation)
        if own != slot and self._has_to_agree:
            raise ProtocolError(f"the head's slot {slot} would be the worker's slot {own}")
        self._own[slot] = own
        return own

    def free(self, slot: int) -> int:
        """Take the slot from who has it; return the worker's own. ProtocolError if nobody has."""
        own = self.own(slot, FREE)
        del self._own[slot]
        self._note(own, "release", f"slot {slot}", self._pool.release(own))
        return own

    def free_all(self) -> None:
        """Take every slot from who has it."""
        for slot in sorted(self._own):
            self.free(slot)

    def own(self, slot: int, command: str) -> int:
        """Return the worker's slot for the head's; ProtocolError when there is none."""
        self._check_range(slot)
        if slot not in self._own:
            raise ProtocolError(f"{command} for slot {slot}, which is not allocated")
        return self._own[slot]

    def _check_range(self, slot: int) -> None:
        if slot >= self._pool.num_slots:
            raise ProtocolError(
                f"slot {slot:#x} is out of range, there are {self._pool.num_slots}",
                todo="a word this large is a command: the head may speak another version, or "
                "have sent a mark for `no slot`",
            )
