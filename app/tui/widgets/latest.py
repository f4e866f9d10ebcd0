"""Keeps slow look-ups from piling up: one at a time, and then only the latest wish."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Wish = TypeVar("Wish")


class Latest(Generic[Wish]):
    """Starts `look_up` for a wish; wishes made meanwhile replace each other.

    All methods are called from the event loop; `look_up` starts a thread and returns.
    """

    def __init__(self, look_up: Callable[[Wish], object]) -> None:
        self._look_up = look_up
        self._running: Wish | None = None
        self._next: Wish | None = None

    def wish(self, wish: Wish) -> None:
        """Look this up now, or as soon as what is being looked up is there."""
        if self._running is None:
            self._running = wish
            self._look_up(wish)
        else:
            self._next = wish

    def is_wanted(self) -> bool:
        """Tell, when an answer is there, whether it is the one to show; else start the next."""
        wish, self._running, self._next = self._next, None, None
        if wish is not None:
            self.wish(wish)
        return wish is None
