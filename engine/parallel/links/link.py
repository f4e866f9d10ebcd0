"""A rank's line to the others: carries collectives, numbers them, and writes each one down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stepscope.engine.clock import Clock
from stepscope.engine.parallel.links.transport import (
    ALL_REDUCE,
    BROADCAST,
    WORD_BYTES,
    WORD_DTYPE,
    NoCommunicator,
    Operation,
    Transport,
)
from stepscope.engine.parallel.protocol import as_signed

if TYPE_CHECKING:
    from stepscope.engine.model.numpy_decoder import Array
    from stepscope.ingest.recorder import Recorder

GROUP, STREAM = "ep", "comm"
# The words in which the engine of report 003 dies.
WITHOUT_COMM = {
    BROADCAST: "ep_broadcast_u32 without comm",
    ALL_REDUCE: "ep_all_reduce without comm",
}
Label = tuple[str, int | None]  # command and slot


class Link:
    """Carries collectives over `transport`; alone in the world, a rank issues none.

    A row is written when a collective has ended, or with no length when it never did, at the time
    at which the rank entered it. `command` and `slot` are what the collectives of the layers are
    for, `rows` the rows of the head's batch. With `is_guarded` off nobody asks how many ranks
    there are: a rank that is alone has no communicator, and its first collective is its end,
    `NoCommunicator`.
    """

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        recorder: Recorder | None = None,
        *,
        is_guarded: bool = True,
    ) -> None:
        self.rank = transport.rank
        self.world_size = transport.world_size
        self.step = 0
        self.command: str | None = None
        self.slot: int | None = None
        self.rows: str | None = None
        self.num_issued = 0
        self._transport = transport
        self._clock = clock
        self._recorder = recorder
        self._is_used = transport.world_size > 1 or not is_guarded
        self._ranks = ",".join(map(str, range(transport.world_size)))

    def send(self, words: Sequence[int], command: str, slot: int | None) -> None:
        """Broadcast words, as the head."""
        operation = Operation(BROADCAST, WORD_DTYPE, len(words), command, slot)
        self._carry(operation, WORD_BYTES, lambda: self._transport.broadcast(operation, words))

    def receive(
        self, num_words: int, told: Callable[[list[int]], Label], command: str = "command"
    ) -> list[int]:
        """Return the head's words; `told` says what they turned out to be for."""
        operation = Operation(BROADCAST, WORD_DTYPE, num_words, command, self.slot)
        words: list[int] = []

        def carry() -> None:
            words.extend(self._transport.broadcast(operation, None))

        self._carry(operation, WORD_BYTES, carry, lambda: told(words))
        return words

    def all_reduce(self, values: Array) -> Array:
        """Return the sum of all ranks' values."""
        operation = Operation(ALL_REDUCE, str(values.dtype), values.size, self.command, self.slot)
        total = values

        def carry() -> None:
            nonlocal total
            total = self._transport.all_reduce(operation, values)

        self._carry(operation, values.itemsize, carry)
        return total

    def leave(self, why: str) -> None:
        """Take part no more."""
        self._transport.leave(why)

    def _carry(
        self,
        operation: Operation,
        element_bytes: int,
        carry: Callable[[], object],
        told: Callable[[], Label] | None = None,
    ) -> None:
        if not self._is_used:
            return
        began_ns, dur_ns = self._clock.now_ns(), None
        try:
            if self.world_size == 1:
                raise NoCommunicator(f"rank {self.rank} died: {WITHOUT_COMM[operation.op]}")
            carry()
            dur_ns = self._clock.now_ns() - began_ns
            if told:
                command, slot = told()
                operation = replace(operation, command=command, slot=slot)
        finally:
            self._note(operation, element_bytes, began_ns, dur_ns)
            self.num_issued += 1

    def _note(
        self, operation: Operation, element_bytes: int, began_ns: int, dur_ns: int | None
    ) -> None:
        if self._recorder:
            slot = operation.slot
            self._recorder.collectives(
                self.step, began_ns, STREAM, self.num_issued, operation.op, operation.dtype,
                operation.num_elements, operation.num_elements * element_bytes, GROUP,
                self._ranks, operation.command, None if slot is None else as_signed(slot), dur_ns,
                None, self.rows,
            )  # fmt: skip
