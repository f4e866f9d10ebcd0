"""What recurrent layers remember of each sequence: one state for a layer and a slot.

KV grows by a token, and a token is forgotten by looking at one less. A state is written over with
every token, so that what came before can be had back only if it was kept: the states after each
token of a slot's last pass are, for the guesses that a verify refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

State = TypeVar("State")


class Memory(Generic[State]):
    """The states of slots; one that nobody wrote to is `empty`."""

    def __init__(self, empty: State) -> None:
        self._empty = empty
        self._states: dict[tuple[int, int], list[State]] = {}

    def last(self, layer: int, slot: int) -> State:
        """Return what a layer remembers of a slot."""
        return self._states.get((layer, slot), [self._empty])[-1]

    def remember(self, layer: int, slot: int, states: Sequence[State]) -> None:
        """Keep the states after each token of a pass, and the one before it."""
        self._states[layer, slot] = [self.last(layer, slot), *states]

    def take_back(self, slot: int, num_tokens: int) -> None:
        """Forget the last `num_tokens` tokens of the last pass."""
        for (_, each), states in self._states.items():
            if each == slot and num_tokens:
                del states[-num_tokens:]

    def forget(self, slot: int) -> None:
        """Forget a slot's sequence."""
        for key in [key for key in self._states if key[1] == slot]:
            del self._states[key]

    def move(self, source: int, target: int) -> None:
        """Let `target` remember what `source` does, and `source` nothing."""
        self.forget(target)
        for layer, slot in [key for key in self._states if key[1] == source]:
            self._states[layer, target] = self._states.pop((layer, slot))
