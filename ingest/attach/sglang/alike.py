"""Which earlier request a request begins like: what the radix cache may find of its tokens."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator

MOST_TOKENS = 1 << 24
"""So many tokens are remembered; whoever came first is forgotten first."""
_WIDTH = 4


class Alike:
    """Sequences of tokens in their order: the one that begins most like another is beside it.

    Contents are not told, only who begins like whom, and how far.
    """

    def __init__(self, most: int = MOST_TOKENS) -> None:
        self._most = most
        self._num_tokens = 0
        self._sorted: list[tuple[bytes, str]] = []
        self._told: deque[tuple[bytes, str]] = deque()

    def of(self, request: str, tokens: Iterable[int]) -> tuple[str | None, int | None]:
        """Give whom a request begins like, and with how many tokens; then remember it.

        `tokens` are its prompt when it comes, its prompt and output when it has ended.
        """
        sequence = array("I", [token & 0xFFFFFFFF for token in tokens]).tobytes()
        at = bisect_left(self._sorted, (sequence, request))
        number, alike = max(self._beside(at, sequence, request), default=(0, ""))
        self._remember(at, (sequence, request))
        return (alike, number) if number else (None, None)

    def _beside(self, at: int, sequence: bytes, request: str) -> Iterator[tuple[int, str]]:
        """How many tokens the nearest on either side have in common with it, but its own."""
        for step in (-1, 1):
            place = at - 1 if step < 0 else at
            while 0 <= place < len(self._sorted):
                other, name = self._sorted[place]
                if name != request:
                    yield _num_alike(sequence, other), name
                    break
                place += step

    def _remember(self, at: int, told: tuple[bytes, str]) -> None:
        self._sorted.insert(at, told)
        self._told.append(told)
        self._num_tokens += len(told[0]) // _WIDTH
        while self._num_tokens > self._most and len(self._told) > 1:
            oldest = self._told.popleft()
            del self._sorted[bisect_left(self._sorted, oldest)]
            self._num_tokens -= len(oldest[0]) // _WIDTH


def _num_alike(one: bytes, other: bytes) -> int:
    """How many first tokens are the same, by halving."""
    low, high = 0, min(len(one), len(other)) // _WIDTH
    while low < high:
        middle = (low + high + 1) // 2
        if one[: middle * _WIDTH] == other[: middle * _WIDTH]:
            low = middle
        else:
            high = middle - 1
    return low
