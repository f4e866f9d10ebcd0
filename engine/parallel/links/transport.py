"""What carries collectives between ranks, and what it means that they cannot go on.

A collective ends when every rank of the group has joined it. Collectives match by position: the
n-th of one rank faces the n-th of each other rank, whatever they are, so that two ranks which do
the same things in another order wait for each other for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from stepscope.ingest.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.engine.model.numpy_decoder import Array

BROADCAST, ALL_REDUCE = "broadcast", "all-reduce"
DEADLOCK, NOT_JOINED = "deadlock", "no other rank joined"
WORD_DTYPE, WORD_BYTES = "uint32", 4


class Disconnected(StepscopeError):
    """The ranks cannot go on together; the message says which operations face each other."""


class NoCommunicator(Disconnected):
    """A rank that is alone, and so was given nothing to talk with, issued a collective."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A collective as one rank sees it; `command` and `slot` say what it is for, if known."""

    op: str
    dtype: str
    num_elements: int
    command: str | None = None
    slot: int | None = None

    @property
    def shape(self) -> tuple[str, str, int]:
        """What has to be the same on all ranks."""
        return self.op, self.dtype, self.num_elements

    def __str__(self) -> str:
        """Return it as an explanation shows it: `broadcast of 1 uint32 (prefill, slot 2)`."""
        slot = None if self.slot is None else f"slot {self.slot}"
        what = ", ".join(text for text in (self.command, slot) if text)
        return f"{self.op} of {self.num_elements} {self.dtype}{f' ({what})' if what else ''}"


class Transport(Protocol):
    """One rank's end of what carries collectives; all ranks are one group."""

    @property
    def rank(self) -> int:
        """Which rank this is, the head is 0."""
        ...

    @property
    def world_size(self) -> int:
        """How many ranks there are."""
        ...

    def broadcast(self, operation: Operation, words: Sequence[int] | None) -> list[int]:
        """Return the head's words, which the head alone gives; `Disconnected` if that fails."""
        ...

    def all_reduce(self, operation: Operation, values: Array) -> Array:
        """Return the sum of all ranks' values; `Disconnected` if that fails."""
        ...

    def leave(self, why: str) -> None:
        """Take part no more; who waits for this rank is told why."""
        ...
