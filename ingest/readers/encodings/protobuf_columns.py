"""Messages of protobuf in columns: the same field of thousands of messages read at once.

The format: https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.uint64]
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_BEHIND = 24
"""Zeros behind the content, so that what is read at its end stays within."""
_FAR = np.int64(1 << 61)
_WIDTH = np.array([0, 8, 0, _FAR, _FAR, 4, _FAR, _FAR])
"""Bytes of a value by its kind, beside those of a varint; groups are read by nobody."""
_LAST_BITS = np.uint64(0x8080808080808080)


@dataclass(frozen=True, slots=True)
class Fields:
    """A field of each of some messages; arrays of one length.

    rows    which message it is of
    tag     number and kind, as `tag` gives them
    number  the value of a number; of others their length
    begin   where the value of what is not a number begins
    end     where the field ends
    """

    rows: Places
    tag: Places
    number: Numbers
    begin: Places
    end: Places


def field_tag(number: int, kind: int) -> int:
    """What a field of that number and kind begins with."""
    return number << 3 | kind


class Content:
    """Bytes that hold messages."""

    def __init__(self, content: bytes) -> None:
        self.bytes = content
        padded = content + bytes(_BEHIND)
        self._octets = np.frombuffer(padded, np.uint8)
        self._words: Numbers = np.ndarray(len(padded) - 7, "<u8", padded, strides=(1,))

    def fields(self, begin: Places, end: Places, most: int) -> Iterator[Fields | Places]:
        """The first field of each message, then the second, and so on, up to `most`.

        Between them come the rows of messages that cannot be read, or have more fields.
        """
        rows, at = np.arange(len(begin)), begin
        for _ in range(most):
            going = at < end
            if not going.all():
                rows, at, end = rows[going], at[going], end[going]
            if not rows.size:
                return
            found = self._field(rows, at)
            broken = found.end > end
            if broken.any():
                yield rows[broken]
                rows, at, end = (each[~broken] for each in (rows, at, end))
                found = self._field(rows, at)
            yield found
            at = found.end
        yield rows[at < end]

    def _field(self, rows: Places, at: Places) -> Fields:
        first = self._octets[at].astype(np.int64)
        at = at + 1
        is_long = np.flatnonzero(first > 127)
        if is_long.size:
            second = self._octets[at[is_long]].astype(np.int64)
            # A third byte is of no field that anyone knows; it is left as a tag of its own.
            first[is_long] += (second << 7) - 128
            at[is_long] += 1
        kind = first & 7
        number, behind = self.varints(at)
        if not kind.any():  # VARINT, as most are
            return Fields(rows, first, number, at, behind)
        width = _WIDTH[kind]
        is_bytes = kind == BYTES
        begin = np.where(is_bytes, behind, at)
        length = np.minimum(number, np.uint64(_FAR)).astype(np.int64)
        end = np.where(is_bytes, behind + length, np.where(kind == VARINT, behind, at + width))
        is_fixed = np.flatnonzero(kind == FIXED64)
        if is_fixed.size:
            number[is_fixed] = self._words[at[is_fixed]]
        return Fields(rows, first, number, begin, end)

    def varints(self, at: Places) -> tuple[Numbers, Places]:
        """Numbers of seven bits a byte, the lowest first, and where they end; far off if never."""
        word = self._words[at]
        last = ~word & _LAST_BITS
        inside = last & (~last + np.uint64(1))
        inside ^= inside - np.uint64(1)  # all bits up to the highest of the last byte
        number = _squeezed(word & inside)
        size = (np.bitwise_count(inside) >> 3).astype(np.int64)
        is_long = np.flatnonzero(last == 0)
        if is_long.size:
            ninth, tenth = (self._octets[at[is_long] + place].astype(np.uint64) for place in (8, 9))
            goes_on = ninth > 127
            number[is_long] |= (ninth & np.uint64(127)) << np.uint64(56)
            number[is_long] |= np.where(goes_on, tenth << np.uint64(63), np.uint64(0))
            size[is_long] += np.where(goes_on, np.where(tenth > 127, _FAR, 2), 1)
        return number, at + size


def _squeezed(word: Numbers) -> Numbers:
    """The lower seven bits of each of eight bytes, side by side."""
    for keep, shift in (
        (0x7F007F007F007F, 1),
        (0x3FFF00003FFF, 2),
        (0xFFFFFFF, 4),
    ):
        lower = np.uint64(keep)
        upper = lower << np.uint64(8 * shift)
        word = (word & lower) | ((word & upper) >> np.uint64(shift))
    return word
