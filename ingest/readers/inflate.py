"""Bytes of a file in blocks, inflated when it is gzip, as far as they can be had."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from stepscope.ingest.errors import TraceError

BLOCK_BYTES = 4 << 20
_STEP_BYTES = 64 << 10
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31


class Inflater:
    """Blocks of at most a few MiB; `damage` says afterwards why a gzip file ended early.

    `progress` gets the compressed bytes read and the size of the file. Raises TraceError when the
    file cannot be opened.
    """

    def __init__(self, path: Path, progress: Callable[[int, int], None] | None = None) -> None:
        self.path = path
        self.damage: str | None = None
        self._progress = progress

    def __iter__(self) -> Iterator[bytes]:
        steps = self._steps()
        first = next(steps, b"")
        plain = self._inflate(first, steps) if first[:2] == _GZIP_MAGIC else _chain(first, steps)
        yield from _gathered(plain)

    def _steps(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file:
                total = self.path.stat().st_size
                while step := file.read(_STEP_BYTES):
                    yield step
                    if self._progress:
                        self._progress(file.tell(), total)
        except OSError as error:
            raise TraceError(error.strerror or str(error), where=str(self.path)) from error

    def _inflate(self, first: bytes, steps: Iterator[bytes]) -> Iterator[bytes]:
        member = None
        for step in _chain(first, steps):
            rest = step
            while rest:
                if member is None:
                    if not rest.startswith(_GZIP_MAGIC[: len(rest)]):
                        return
                    member = zlib.decompressobj(_GZIP_WINDOW)
                before = member.copy()
                try:
                    yield member.decompress(rest, BLOCK_BYTES)
                except zlib.error as error:
                    self.damage = f"the gzip data is damaged ({error})"
                    yield salvaged(before, rest)
                    return
                rest = member.unused_data if member.eof else member.unconsumed_tail
                member = None if member.eof else member
        if member is not None:
            self.damage = "the gzip data is cut off"


def inflated(start: bytes, limit: int) -> bytes:
    """What the first bytes of a file hold, inflated up to `limit` when they are gzip."""
    if start[: len(_GZIP_MAGIC)] != _GZIP_MAGIC:
        return start
    try:
        return zlib.decompressobj(_GZIP_WINDOW).decompress(start, limit)
    except zlib.error:
        return salvaged(zlib.decompressobj(_GZIP_WINDOW), start)[:limit]


def salvaged(inflate: zlib._Decompress, step: bytes) -> bytes:
    """Inflate byte by byte up to the damage: a call that fails gives nothing of what it read.

    For short stretches: it takes a call per byte.
    """
    good = bytearray()
    try:
        for index in range(len(step)):
            good += inflate.decompress(step[index : index + 1])
    except zlib.error:
        pass
    return bytes(good)


def _chain(first: bytes, steps: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from steps


def _gathered(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Join small parts into blocks of `BLOCK_BYTES` or a little more."""
    gathered = bytearray()
    for part in parts:
        gathered += part
        if len(gathered) >= BLOCK_BYTES:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)
