"""What compressed files hold, and of those that are damaged every byte that can be had."""

from __future__ import annotations

from collections.abc import Callable, Iterator

BLOCK_BYTES = 4 << 20
"""A part that is inflated has no more."""

Steps = Callable[[], Iterator[bytes]]
"""Gives the bytes of a file in steps, from its beginning each time."""
Parts = Callable[[Iterator[bytes]], Iterator[bytes]]
"""Inflates steps; raises `Damaged` where they are damaged or cut off."""


class Damaged(Exception):
    """Says why nothing more can be inflated."""


class Inflated:
    """Iterates over inflated parts; `damage` says afterwards why they ended early.

    A call that fails gives nothing of what it read before the damage. So the file is then read
    again, by `careful`, and what was left of it at that call is handed over byte by byte.
    """

    def __init__(self, steps: Steps, fast: Parts, careful: Parts) -> None:
        self.damage: str | None = None
        self._steps = steps
        self._fast = fast
        self._careful = careful
        self._num_good = 0

    def __iter__(self) -> Iterator[bytes]:
        num_given = 0
        try:
            for part in self._fast(self._counted()):
                num_given += len(part)
                yield part
        except Damaged:
            yield from _behind(num_given, self._up_to_damage())

    def _counted(self) -> Iterator[bytes]:
        for step in self._steps():
            yield step
            self._num_good += len(step)

    def _up_to_damage(self) -> Iterator[bytes]:
        try:
            yield from self._careful(_byte_by_byte(self._steps(), self._num_good))
        except Damaged as damage:
            self.damage = str(damage)


def _byte_by_byte(steps: Iterator[bytes], from_byte: int) -> Iterator[bytes]:
    """The steps as they are, but each byte by itself of the one that begins at `from_byte`."""
    begin = 0
    for step in steps:
        if begin == from_byte:
            yield from (step[at : at + 1] for at in range(len(step)))
        else:
            yield step
        begin += len(step)


def _behind(num: int, parts: Iterator[bytes]) -> Iterator[bytes]:
    """The parts without their first `num` bytes."""
    for part in parts:
        yield part[num:]
        num = max(0, num - len(part))
