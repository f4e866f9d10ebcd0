"""vLLM's waiting queues, seen as the one line in which they are emptied."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from heapq import merge
from itertools import chain
from typing import Any

NAMES = ("kv_holding_waiting", "skipped_waiting", "waiting")
"""In the order in which they are emptied; a version has some of them.

Where there are priorities, whoever of the last two has the better one comes first.
"""


class WaitingLine:
    """Where a request stands among those that wait.

    A queue with priorities is a heap: its order is that of the requests, kept here beside it, so
    that a place in it is a short search.
    """

    def __init__(self, scheduler: Any) -> None:
        found = {name: getattr(scheduler, name) for name in NAMES if hasattr(scheduler, name)}
        self.queues = list(found.values())
        self.counts = [_counting(queue) for queue in self.queues]
        policy = getattr(scheduler, "policy", None)
        self.is_sorted = getattr(policy, "value", policy) == "priority"
        apart = [queue for name, queue in found.items() if self.is_sorted and name != NAMES[0]]
        self._sorted = apart if len(apart) > 1 else []
        self._keys: list[tuple[Any, ...]] = []
        self._key_of: dict[str, tuple[Any, ...]] = {}

    def __len__(self) -> int:
        """How many wait."""
        number = 0
        for count in self.counts:
            number += count()
        return number

    def __iter__(self) -> Iterator[Any]:
        """Requests in the order in which they are considered."""
        if not self._sorted:
            return chain.from_iterable(self.queues)
        first = self.queues[: -len(self._sorted)]
        return chain(chain.from_iterable(first), merge(*self._sorted, key=_key))

    def has_several(self) -> bool:
        """Whether requests wait in more than one queue: they may have moved between them."""
        return sum(map(bool, self.queues)) > 1

    def enter(self, request: Any, *, at_front: bool = False) -> int | None:
        """Take note of who came in; give its place, None for the end of the line."""
        if self.is_sorted:
            key = _key(request)
            place = bisect_left(self._keys, key)
            self._keys.insert(place, key)
            self._key_of[request.request_id] = key
            return place
        return len(self) - len(self.queues[-1]) if at_front and self.queues else None

    def leave(self, request_id: str) -> None:
        """Take note of who left."""
        if (key := self._key_of.pop(request_id, None)) is not None:
            place = bisect_left(self._keys, key)
            if place < len(self._keys) and self._keys[place] == key:
                del self._keys[place]


def _counting(queue: Any) -> Callable[[], int]:
    """Give what counts a queue: of one that is a deque what the interpreter has for that."""
    count: Callable[[], int] = queue.__len__
    if isinstance(queue, deque):
        count = deque.__len__.__get__(queue)
    return count


def _key(request: Any) -> tuple[Any, ...]:
    return request.priority, request.arrival_time, request.request_id
