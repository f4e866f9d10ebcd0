"""Ranks as threads of one process, who meet at each collective on a clock of their own.

A collective begins when the last rank joins it and takes `latency_ns`. It happens only if all
ranks join with the same operation: otherwise, or when a rank has left, nobody can ever go on, and
that is known at once. So the same run takes the same time and ends in the same words.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stepscope.engine.clock import Clock
from stepscope.engine.parallel.links.first_difference import explain
from stepscope.engine.parallel.links.transport import DEADLOCK, Disconnected, Operation

if TYPE_CHECKING:
    from stepscope.engine.model.numpy_decoder import Array

NUM_REMEMBERED = 8
# A rank computes for milliseconds between two collectives. Who waits this long found a bug of ours.
PATIENCE_S = 120.0


@dataclass(slots=True)
class _Meeting:
    """One collective: who has come with what, and when; `end_ns` once all have."""

    operations: dict[int, Operation] = field(default_factory=dict)
    brought: dict[int, Any] = field(default_factory=dict)
    latest_ns: int = 0
    end_ns: int | None = None


class Rendezvous:
    """The place where `world_size` ranks meet, one collective after the other."""

    def __init__(self, world_size: int, *, latency_ns: int = 0) -> None:
        self.world_size = world_size
        self._latency_ns = latency_ns
        self._changed = threading.Condition()
        self._meeting = _Meeting()
        self._num_met = 0
        self._past: deque[Operation] = deque(maxlen=NUM_REMEMBERED)
        self._gone: dict[int, str] = {}
        self._why_broken: str | None = None

    def end(self, rank: int, clock: Clock) -> RendezvousTransport:
        """Return the end of `rank`, whose time passes on `clock`."""
        return RendezvousTransport(self, rank, clock)

    def join(
        self, rank: int, operation: Operation, brought: Any, now_ns: int
    ) -> tuple[dict[int, Any], int]:
        """Return what each rank brought, and when it was there; `Disconnected` if that is never."""
        with self._changed:
            meeting = self._meeting
            meeting.operations[rank] = operation
            meeting.brought[rank] = brought
            meeting.latest_ns = max(meeting.latest_ns, now_ns)
            self._settle()
            self._changed.wait_for(
                lambda: self._why_broken or meeting.end_ns is not None, PATIENCE_S
            )
            if meeting.end_ns is None:
                raise Disconnected(self._why_broken or "a rank neither joins nor leaves")
            return meeting.brought, meeting.end_ns

    def leave(self, rank: int, why: str) -> None:
        """Let `rank` take part no more."""
        with self._changed:
            self._gone.setdefault(rank, why)
            self._settle()

    def _settle(self) -> None:
        """End the meeting if all are there, or for good if somebody can never be."""
        meeting = self._meeting
        if not meeting.operations:
            return
        first, *others = meeting.operations.values()
        if self._gone:
            self._why_broken = self._why_broken or self._told_gone()
        elif len(meeting.operations) < self.world_size:
            return
        elif any(other.shape != first.shape for other in others):
            self._why_broken = self._why_broken or self._told_deadlock()
        else:
            meeting.end_ns = meeting.latest_ns + self._latency_ns
            self._past.append(meeting.operations[min(meeting.operations)])
            self._num_met += 1
            self._meeting = _Meeting()
        self._changed.notify_all()

    def _told_deadlock(self) -> str:
        histories = {
            rank: [*self._past, operation] for rank, operation in self._meeting.operations.items()
        }
        return f"{DEADLOCK}: {explain(histories, self._num_met - len(self._past))}"

    def _told_gone(self) -> str:
        whys = "; ".join(f"rank {rank} has left: {why}" for rank, why in sorted(self._gone.items()))
        waiting = ", ".join(
            f"rank {rank} waits in operation {self._num_met}, {operation}"
            for rank, operation in sorted(self._meeting.operations.items())
        )
        return f"{whys}; {waiting}"


class RendezvousTransport:
    """One rank's end of a rendezvous; waiting moves the rank's clock on."""

    def __init__(self, place: Rendezvous, rank: int, clock: Clock) -> None:
        self.rank = rank
        self.world_size = place.world_size
        self._place = place
        self._clock = clock

    def broadcast(self, operation: Operation, words: Sequence[int] | None) -> list[int]:
        """Return what the head brought."""
        return list(self._join(operation, words)[0])

    def all_reduce(self, operation: Operation, values: Array) -> Array:
        """Return the sum, added up in the order of the ranks, so that it is the same on each."""
        brought = self._join(operation, values)
        total: Array = brought[0]
        for rank in range(1, self.world_size):
            total = total + brought[rank]
        return total

    def leave(self, why: str) -> None:
        """Take part no more."""
        self._place.leave(self.rank, why)

    def _join(self, operation: Operation, brought: Any) -> dict[int, Any]:
        everything, end_ns = self._place.join(self.rank, operation, brought, self._clock.now_ns())
        self._clock.advance_to(end_ns)
        return everything
