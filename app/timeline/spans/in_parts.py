"""Much of something, some of it after others: how much at a time, and the next meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")


def one_ahead(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts, none of which is None, each made while the one before it is used."""
    every = iter(parts)
    with ThreadPoolExecutor(1) as maker:
        coming = maker.submit(next, every, None)
        while (part := coming.result()) is not None:
            coming = maker.submit(next, every, None)
            yield part


def some_after_others(sizes: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Ranges of places whose sizes are at most so much together, or which are one place."""
    first = size = 0
    for place, own in enumerate(sizes):
        if place > first and size + own > most:
            yield first, place
            first, size = place, 0
        size += own
    if sizes:
        yield first, len(sizes)
