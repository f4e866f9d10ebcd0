"""Messages of msgpack that follow each other in a file, one at a time.

The format: https://github.com/msgpack/msgpack/blob/master/spec.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stepscope.ingest.limits import DEFAULTS, raised_by

_INVALID = 0xC1
# First byte -> how many bytes follow it; or how many bytes the length has that follows it.
_FIXED = {
    0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8,
    0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8,
    0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17,
}  # fmt: skip
_BYTES = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_EXTENSIONS = (0xC7, 0xC8, 0xC9)
_ARRAYS, _MAPS = {0xDC: 2, 0xDD: 4}, {0xDE: 2, 0xDF: 4}


class Damaged(ValueError):
    """A byte that cannot be there."""


class Messages:
    """Iterates over decoded messages; what is wrong with the file is known afterwards.

    num_undecoded   messages that are whole and cannot be decoded (not UTF-8, too deep)
    damaged_at      the byte from which on nothing can be read; None where all could
    is_cut_off      the file ends in a message
    beyond          the limit that ended it, if a message is of more than `most_bytes`
    """

    def __init__(self, blocks: Iterable[bytes], most_bytes: int = DEFAULTS.message) -> None:
        self.num_undecoded = 0
        self.damaged_at: int | None = None
        self.is_cut_off = False
        self.beyond: str | None = None
        self._blocks = blocks
        self._most_bytes = most_bytes

    def __iter__(self) -> Iterator[Any]:
        window, done = b"", 0
        for block in self._blocks:
            window += block
            begin = 0
            try:
                while end := message_end(window, begin):
                    yield from self._decoded(window[begin:end])
                    begin = end
            except Damaged:
                self.damaged_at = done + begin
                return
            window, done = window[begin:], done + begin
            if len(window) > self._most_bytes:
                most = f"more than {self._most_bytes:,} bytes at byte {done:,}"
                self.beyond = f"a message of {most} ({raised_by('message')})"
                return
        self.is_cut_off = bool(window)

    def _decoded(self, message: bytes) -> Iterator[Any]:
        found = decoded(message)
        if found is None:
            self.num_undecoded += 1
        else:
            yield found


def decoded(message: bytes) -> Any:
    """What a message holds; None for nil, and where it cannot be decoded."""
    try:
        return msgspec.msgpack.decode(message)
    except (msgspec.DecodeError, RecursionError, TypeError, ValueError, OverflowError):
        return None


def message_end(window: bytes, begin: int) -> int | None:
    """Where the message at `begin` ends; None where it goes on beyond the window.

    Raises `Damaged`. Nothing is decoded, and nesting costs nothing.
    """
    at, left, last = begin, 1, len(window)
    while left:
        if at >= last:
            return None
        first = window[at]
        left -= 1
        at += 1
        if first <= 0x7F or first >= 0xE0:
            continue
        if first < 0xA0:
            left += (first & 15) * (2 if first < 0x90 else 1)
        elif first < 0xC0:
            at += first & 31
        elif first in _FIXED:
            at += _FIXED[first]
        elif first == _INVALID:
            raise Damaged
        else:
            size = _BYTES.get(first) or _ARRAYS.get(first) or _MAPS[first]
            length = int.from_bytes(window[at : at + size])
            at += size
            if first in _BYTES:
                at += length + (first in _EXTENSIONS)
            else:
                left += length * (2 if first in _MAPS else 1)
    return at if at <= last else None
