"""Keeps slow look-ups from piling up: one at a time, and then only the latest query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Query = TypeVar("Query")


class Latest(Generic[Query]):
    """Starts `look_up` for a query; queries made meanwhile replace each other.

    All methods are called from the event loop; `look_up` starts a thread and returns.
    """

    def __init__(self, look_up: Callable[[Query], object]) -> None:
        self._look_up = look_up
        self._running: Query | None = None
        self._next: Query | None = None

    def ask(self, query: Query) -> None:
        """Look this up now, or as soon as what is being looked up is there."""
        if self._running is None:
            self._running = query
            self._look_up(query)
        else:
            self._next = query

    def is_wanted(self) -> bool:
        """Tell, when an answer is there, whether it is the one to show; else start the next."""
        query, self._running, self._next = self._next, None, None
        if query is not None:
            self.ask(query)
        return query is None
