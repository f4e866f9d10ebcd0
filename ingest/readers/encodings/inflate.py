"""Bytes of a file, inflated when it is gzip or zstd, as far as they can be had."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Protocol

from stepscope.ingest.errors import LimitExceeded, TraceError
from stepscope.ingest.limits import DEFAULTS, Limits, raised_by
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings import gunzip, unzstd
from stepscope.ingest.readers.encodings.compressed import BLOCK_BYTES, Inflated, Steps

FREE_BYTES = 64 << 20
"""Up to here nobody asks of how few bytes they were made."""
_STEP_BYTES = 64 << 10
BytesRead = Callable[[int, int], None]


class Contents(Protocol):
    """What a file holds, read into buffers; `damage` says afterwards why it ended early."""

    damage: str | None

    def readinto(self, buffer: memoryview) -> int:
        """Fill a buffer from its beginning, as far as one read goes; give 0 at the end."""


@contextmanager
def contents(
    path: Path, progress: BytesRead | None = None, limits: Limits = DEFAULTS
) -> Iterator[Contents]:
    """Open what a file holds; what is plain is copied no more than once. Raises `TraceError`."""
    try:
        file = FileIO(path)
    except OSError as error:
        raise _unreadable(path, error) from error
    with file:
        plain = Plain(file, path, progress)
        yield Inflater(path, progress, limits) if plain.is_compressed() else plain


def blocks_of(path: Path, progress: Progress | None, limits: Limits) -> Inflater:
    """Blocks of what a file holds; who waits is told how much of the file is read."""
    return Inflater(path, progress and partial(progress, "reading"), limits)


def whole_of(blocks: Inflater, path: Path, limits: Limits) -> bytes:
    """All that a file holds, of a format that is read whole; raises `LimitExceeded`."""
    content = bytearray()
    for block in blocks:
        content += block
        if len(content) > limits.whole:
            most = f"more than {limits.whole:,} bytes"
            raise LimitExceeded(most, where=str(path), todo=raised_by("whole"))
    return bytes(content)


class Plain:
    """What an open file holds, as it stands there."""

    damage: str | None = None

    def __init__(self, file: FileIO, path: Path, progress: BytesRead | None = None) -> None:
        self._file = file
        self._path = path
        self._progress = progress
        self._num_read = 0

    def is_compressed(self) -> bool:
        """Tell by its first bytes whether it is to be inflated."""
        try:
            start = self._file.read(len(unzstd.MAGIC))
            self._file.seek(0)
        except OSError as error:
            raise _unreadable(self._path, error) from error
        return _inflater_of(start) is not None

    def readinto(self, buffer: memoryview) -> int:
        """Fill a buffer from its beginning, as far as one read goes; give 0 at the end."""
        try:
            num = self._file.readinto(buffer)
            if self._progress and num:
                self._num_read += num
                self._progress(self._num_read, os.fstat(self._file.fileno()).st_size)
        except OSError as error:
            raise _unreadable(self._path, error) from error
        return num


class Inflater:
    """Blocks of at most a few MiB; `damage` says afterwards why a compressed file ended early.

    `progress` gets the compressed bytes read and the size of the file. What comes out of a
    compressed file beyond its limits is left out. Raises TraceError when the file cannot be opened.
    """

    def __init__(
        self,
        path: Path,
        progress: BytesRead | None = None,
        limits: Limits = DEFAULTS,
    ) -> None:
        self.path = path
        self.damage: str | None = None
        self._progress = progress
        self._limits = limits
        self._num_read = 0
        self._step_bytes = _STEP_BYTES
        self._parts: Iterator[bytes] | None = None
        self._left = memoryview(b"")

    def readinto(self, buffer: memoryview) -> int:
        """Fill a buffer whole, as far as there is something; give 0 at the end."""
        # An empty part says nothing of the end.
        self._parts = self._parts or filter(None, self._inflated())
        num = 0
        while num < len(buffer):
            self._left = self._left or memoryview(next(self._parts, b""))
            if not self._left:
                break
            fits = min(len(buffer) - num, len(self._left))
            buffer[num : num + fits], self._left = self._left[:fits], self._left[fits:]
            num += fits
        return num

    def __iter__(self) -> Iterator[bytes]:
        yield from _gathered(self._inflated())

    def _inflated(self) -> Iterator[bytes]:
        """What the file holds, in parts as small as they come."""
        inflate = _inflater_of(next(self._steps(), b""))
        if inflate is None:
            self._step_bytes = BLOCK_BYTES
        yield from self._within_limits(inflate(self._steps)) if inflate else self._steps()

    def _steps(self) -> Iterator[bytes]:
        """The file's bytes from its beginning."""
        self._num_read = 0
        try:
            with self.path.open("rb") as file:
                total = self.path.stat().st_size
                while step := file.read(self._step_bytes):
                    self._num_read += len(step)
                    yield step
                    if self._progress:
                        self._progress(self._num_read, total)
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def _within_limits(self, inflated: Inflated) -> Iterator[bytes]:
        num_out = 0
        for part in inflated:
            num_out += len(part)
            self.damage = self._beyond(num_out)
            if self.damage:
                return
            yield part
        self.damage = inflated.damage

    def _beyond(self, num_out: int) -> str | None:
        """Which limit so many bytes are beyond."""
        if num_out > self._limits.inflated:
            most = f"{self._limits.inflated:,} bytes"
            return f"it inflates to more than {most} ({raised_by('inflated')})"
        if num_out > FREE_BYTES and num_out > self._limits.ratio * self._num_read:
            most = f"{self._limits.ratio:,} times its size"
            return f"it inflates to more than {most} ({raised_by('ratio')})"
        return None


def _unreadable(path: Path, error: OSError) -> TraceError:
    return TraceError(error.strerror or str(error), where=str(path))


def inflated(start: bytes, limit: int) -> bytes:
    """What the first bytes of a file hold, inflated up to `limit` when they are compressed."""
    inflate = _inflater_of(start)
    if inflate is None:
        return start
    found = bytearray()
    for part in inflate(lambda: iter((start,))):
        found += part
        if len(found) >= limit:
            break
    return bytes(found[:limit])


def _inflater_of(start: bytes) -> Callable[[Steps], Inflated] | None:
    if start.startswith(gunzip.MAGIC):
        return gunzip.gunzip
    return unzstd.unzstd if start.startswith(unzstd.MAGIC) else None


def _gathered(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Join small parts into blocks of `BLOCK_BYTES` or a little more."""
    gathered = bytearray()
    for part in parts:
        if not gathered and len(part) >= BLOCK_BYTES:
            yield part
            continue
        gathered += part
        if len(gathered) >= BLOCK_BYTES:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)
