"""The fields of an XSpace, one after the other, as they come: its planes and lines are opened.

XSpace {planes = 1, errors = 2, warnings = 3, hostnames = 4}
XPlane {id = 1, name = 2, lines = 3, event_metadata = 4, stat_metadata = 5, stats = 6}
XLine {id = 1, name = 2, timestamp_ns = 3, events = 4, duration_ps = 9, display_id = 10,
       display_name = 11}

Names of events stand behind the lines that they are in. The format:
`tsl/profiler/protobuf/xplane.proto`.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from stepscope.ingest.limits import Limits, raised_by
from stepscope.ingest.readers.encodings.protobuf_columns import (
    BYTES,
    VARINT,
    Content,
    Places,
    field_tag,
)
from stepscope.ingest.readers.encodings.protobuf_fields import field_at, varint

Path = tuple[int, ...]
PLANE, LINE = (1,), (1, 3)
EVENT = (1, 3, 4)
_OPENED = (PLANE, LINE)
_EVENT_TAG = field_tag(EVENT[-1], BYTES)
_LONGEST_HEAD = 20
_LAST_OF_ONE = 127
_ENDLESS = 1 << 62
_NAME = 2
_PRINTABLE = re.compile(rb"[ -~]+")
_FIRST_FIELDS = 8


@dataclass(frozen=True, slots=True)
class Opened:
    """A plane or a line begins here."""

    path: Path


@dataclass(frozen=True, slots=True)
class Field:
    """A field: a number, or the bytes of a text or message."""

    path: Path
    value: int | bytes


@dataclass(frozen=True, slots=True)
class Events:
    """Events of the line that is open, by where each begins and ends in some content."""

    content: Content
    begin: Places
    end: Places


class FieldStream:
    """Iterates over fields and events; what is said afterwards was wrong.

    `num_lost` bytes are no fields of what they stand in, `num_too_large` fields were left out for
    their size, `cut_off` tells that the file ends within a message.
    """

    def __init__(self, blocks: Iterable[bytes], limits: Limits) -> None:
        self.num_bytes = 0
        self.num_lost = 0
        self.num_too_large = 0
        self.cut_off = False
        self._blocks = blocks
        self._limit_bytes = limits.event
        self._open: list[tuple[Path, int]] = []
        """What is open, and where in the file it ends."""
        self._window = b""
        self._base = 0
        """Where in the file the window begins."""
        self._at = 0
        """Where in the file it is read on."""

    def __iter__(self) -> Iterator[Opened | Field | Events]:
        for block in self._blocks:
            self.num_bytes += len(block)
            window = self._window + block
            done = min(self._at - self._base, len(window))
            self._window, self._base = window[done:], self._base + done
            yield from self._fields()
        self._close()
        self.cut_off = self._at != self.num_bytes or bool(self._open)

    def too_large(self) -> dict[str, int]:
        """What was left out for its size, counted."""
        what = f"fields of more than {self._limit_bytes:,} bytes ({raised_by('event')})"
        return {what: self.num_too_large} if self.num_too_large else {}

    def _fields(self) -> Iterator[Opened | Field | Events]:
        """What is whole in the window."""
        while True:
            self._close()
            if self._at - self._base >= len(self._window):
                return
            path, until = self._open[-1] if self._open else ((), _ENDLESS)
            if path == LINE and (events := self._events(until)):
                yield events
                continue
            head = _head(self._window, self._at - self._base)
            if head is None and len(self._window) - (self._at - self._base) < _LONGEST_HEAD:
                return
            if head is None or self._base + head.end > until:
                self._lose(until)
                continue
            own = (*path, head.number)
            if head.kind == BYTES and own in _OPENED:
                self._open.append((own, self._base + head.end))
                self._at = self._base + head.begin
                yield Opened(own)
            elif head.end <= len(self._window):
                self._at = self._base + head.end
                yield from _found(own, head, self._window)
            elif head.end - head.begin > self._limit_bytes:
                self.num_too_large += 1
                self._at = self._base + head.end
            else:
                return

    def _close(self) -> None:
        while self._open and self._open[-1][1] <= self._at:
            self._open.pop()

    def _lose(self, until: int) -> None:
        """Go on behind what cannot be read; outside of all planes that is nowhere."""
        reached = until if until != _ENDLESS else self._base + len(self._window)
        self.num_lost += reached - self._at
        self._at = reached

    def _events(self, until: int) -> Events | None:
        """The events that follow each other here; None where the next field is none."""
        window, first = self._window, self._at - self._base
        begins, ends = array("q"), array("q")
        at, last = first, min(len(window), until - self._base)
        try:
            while at < last and window[at] == _EVENT_TAG:
                length, begin = window[at + 1], at + 2
                if length > _LAST_OF_ONE:
                    second = window[begin]
                    if second > _LAST_OF_ONE:
                        break
                    length, begin = (length & _LAST_OF_ONE) | second << 7, begin + 1
                if begin + length > last:
                    break
                begins.append(begin)
                at = begin + length
                ends.append(at)
        except IndexError:
            pass
        if not begins:
            return None
        self._at = self._base + at
        places = (np.frombuffer(each, np.int64) - first for each in (begins, ends))
        return Events(Content(window[first:at]), *places)


@dataclass(frozen=True, slots=True)
class _Head:
    """A field by its number and kind, and where its content begins and ends."""

    number: int
    kind: int
    begin: int
    end: int


def _head(window: bytes, at: int) -> _Head | None:
    tag, field = varint(window, at), field_at(window, at)
    return _Head(tag[0] >> 3, tag[0] & 7, *field) if tag and field else None


def _found(path: Path, head: _Head, window: bytes) -> Iterator[Field | Events]:
    if path == EVENT and head.kind == BYTES:
        content = window[head.begin : head.end]
        yield Events(Content(content), np.zeros(1, np.int64), np.array([len(content)], np.int64))
    elif head.kind == BYTES:
        yield Field(path, window[head.begin : head.end])
    elif head.kind == VARINT and (number := varint(window, head.begin)):
        yield Field(path, number[0])


def is_xspace(head: bytes) -> bool:
    """Tell XPlane's protobuf: planes have a name in text, and Perfetto's packets have none."""
    plane = field_at(head, 0) if head[:1] == bytes([field_tag(PLANE[-1], BYTES)]) else None
    at, end = plane or (0, 0)
    for _ in range(_FIRST_FIELDS):
        field = field_at(head, at) if at < min(end, len(head)) else None
        if field is None:
            return False
        if head[at] == field_tag(_NAME, BYTES):
            name = head[slice(*field)]
            return _PRINTABLE.fullmatch(name) is not None
        at = field[1]
    return False
