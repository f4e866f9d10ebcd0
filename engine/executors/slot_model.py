"""What computes the rows of `ragged`, behind one Protocol; and the one that only costs time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

from stepscope.engine.executors import Digest
from stepscope.engine.executors.simulated import CostModel
from stepscope.engine.requests.request import EOS_TOKEN, Request

if TYPE_CHECKING:
    from stepscope.engine.batch import Batch, Row
    from stepscope.engine.clock import Clock

Sampled = tuple[int, Digest | None]


def slot_of(row: Row) -> int:
    """Return the slot of a row's request."""
    assert row.request.slot is not None, "the engine gives a slot to whom it admits"
    return row.request.slot


class SlotModel(Protocol):
    """Computes prompts into slots, and a token in every slot, live or masked."""

    @property
    def name(self) -> str:
        """What goes before the path of a step, empty if nothing does."""
        ...

    def step(self, batch: Batch, step: int, clock: Clock) -> AbstractContextManager[None]:
        """Give the context in which all of a step is computed."""
        ...

    def refresh(self, num_bytes: int) -> None:
        """Copy every slot from the device to the host's mirror."""
        ...

    def commit(self, num_bytes: int) -> None:
        """Copy every slot from the mirror to the device, or what was written past the mirror."""
        ...

    def prefill(self, row: Row, slot: int) -> Sampled:
        """Write a prompt to a slot and return the first token."""
        ...

    def decode(self, live: Sequence[Row]) -> list[Sampled]:
        """Compute a row for each slot, and return the tokens of the live ones."""
        ...


class Priced:
    """Rows that cost what a cost model says, and sample nothing but an output's end.

    A copy takes a nanosecond for `bytes_per_ns` bytes.
    """

    name = ""

    def __init__(self, cost: CostModel, num_slots: int, bytes_per_ns: int = 32) -> None:
        self._cost = cost
        self._num_slots = num_slots
        self._bytes_per_ns = bytes_per_ns

    def step(self, batch: Batch, step: int, clock: Clock) -> AbstractContextManager[None]:
        """Take the clock on which the step's time passes."""
        del batch, step
        self._clock = clock
        return nullcontext()

    def refresh(self, num_bytes: int) -> None:
        """Wait for the copy."""
        self._clock.advance(num_bytes // self._bytes_per_ns)

    def commit(self, num_bytes: int) -> None:
        """Wait for the copy."""
        self._clock.advance(num_bytes // self._bytes_per_ns)

    def prefill(self, row: Row, slot: int) -> Sampled:
        """Pass the time of a prompt."""
        num_tokens = row.num_tokens - row.num_fed_back
        self._clock.advance(self._cost.base_ns + self._cost.prefill_token_ns * num_tokens)
        return _token(row.request, 1), None

    def decode(self, live: Sequence[Row]) -> list[Sampled]:
        """Pass the time of a row for each slot."""
        self._clock.advance(
            self._cost.base_ns
            + self._cost.decode_row_ns * self._num_slots
            + self._cost.kv_token_ns * sum(row.num_kv_tokens for row in live)
        )
        return [(_token(row.request, 1 + row.num_fed_back), None) for row in live]


def _token(request: Request, place: int) -> int:
    return EOS_TOKEN if request.num_generated + place == request.eos_after else 0
