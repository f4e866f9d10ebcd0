"""Bytes that rows point to, such as texts and changes of a batch: each has its length before it,
and behind it its number, which is stored last, so that only what is whole has it.

A number is where they stand, in units of 8 bytes. `place` is the segment that is written to, where
the next bytes will lie, and what the segment's first byte counts as. What is written here is in C,
and one call of it nobody comes between; where that was not compiled, a lock is to be held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import filterfalse
from typing import Any

from stepscope.ingest.recording.forms.rows import compiled

Place = list[Any]
"""[Segment, int, int]"""


def _write_bytes(place: Place, raw: bytes) -> int | None:
    """Write bytes; give their number, or None where the segment has no room for them."""
    segment, at, first = place
    size = size_with(raw)
    if at + size > len(segment):
        return None
    place[1] = at + size
    number, end = (first + at) // 8, at + 4 + len(raw)
    segment[at:end] = len(raw).to_bytes(4, "little") + raw
    segment[end : end + 4] = number.to_bytes(4, "little")
    return int(number)


def _write_left(*_: Any) -> int | None:
    """Write the change of a batch that some rows leave, and give its number. None where there is no
    room, or more leave than is written here; as in Python: it is written as other changes are.
    """
    return None


def _places_left(before: list[str] | None, now: list[str]) -> list[int] | None:
    """Tell who left: the places of those of `before` who are not in `now`, lowest first. None where
    there are others in `now`, or in another order, or none at all.

    In C only the same object is the same name: an engine gives it again, and after a forward pass
    the letters of names, and their hashes, are far away.
    """
    if not before or not now:
        return None
    known = set(now)
    places = [place for place, name in enumerate(before) if name not in known]
    stayed = [name for name in before if name in known]
    return places if stayed == now else None


def _keys_left(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str] | None:
    """Tell which keys of `before` are not in `now`. None where that is not so simple to tell: in C,
    where what is in both is not in the same order, or is not the same object.
    """
    return [*filterfalse(now.__contains__, before)]


write_bytes: Callable[[Place, bytes], int | None] = _write_bytes
write_left: Callable[[Place, int, int, Sequence[int]], int | None] = _write_left
places_left: Callable[[list[str] | None, list[str]], list[int] | None] = _places_left
keys_left: Callable[[Mapping[str, Any], Mapping[str, Any]], list[str] | None] = _keys_left
if compiled is not None:
    write_bytes, write_left = compiled.write_bytes, compiled.write_left
    places_left, keys_left = compiled.places_left, compiled.keys_left


def size_with(raw: bytes) -> int:
    """How many bytes of a segment some bytes take."""
    return -(-(8 + len(raw)) // 8) * 8
