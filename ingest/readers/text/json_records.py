"""Records of a large JSON file, one at a time: objects at known places, whatever surrounds them.

Brackets are counted over all bytes of a block at once, but for those within quotes; only what lies
at the wanted places is cut out. Values that follow each other, as in JSON lines, are read one after
the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stepscope.ingest.limits import Limits, raised_by

Path = tuple[str, ...]
"""The keys that lead to a value; elements of an array have the path of the array."""
_KEY = re.compile(rb'"((?:[^"\\]|\\.)*+)"\s*+:\s*+\Z', re.DOTALL)
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_LONGEST_KEY = 512
_QUOTE, _OPEN, _CLOSE, _OBJECT = 0x22, 0x7B, 0x7D, 0x7B
_LOWER = 0x20
"""The bit by which braces differ from square brackets."""
DAMAGED = object()
"""Stands for a value that could not be read."""
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Record:
    """An object as it stands in the file, its path, and the numbers of what is around it."""

    path: Path
    within: tuple[int, ...]
    text: bytes


class JsonRecords:
    """Iterates over records in the order of the file; `ended` says afterwards why it ended early.

    `is_record` tells by its path whether an object is one. Nothing with `depth` brackets or more
    around it is one. A record has at most as many bytes as an event may have.
    """

    def __init__(
        self, blocks: Iterable[bytes], is_record: Callable[[Path], bool], depth: int, limits: Limits
    ) -> None:
        self.ended: str | None = None
        self.num_bytes = 0
        self._blocks = blocks
        self._is_record = is_record
        self._depth = depth
        self._limit_bytes = limits.event
        self._num_opened = 0
        self._around: list[tuple[Path, int]] = []
        self._level = 0
        """How many brackets are open where the window begins: outside of quotes."""
        self._begun: Path | None = None
        """The path of the record that the window begins with, as far as it goes."""

    def __iter__(self) -> Iterator[Record]:
        window = b""
        for block in self._blocks:
            self.num_bytes += len(block)
            window += block
            at = yield from self._records(window)
            window = window[at:]
            if len(window) > self._limit_bytes:
                most = f"{self._limit_bytes:,} bytes ({raised_by('event')})"
                self.ended = f"a record of more than {most}"
            if self.ended:
                return
        self.ended = "cut off" if self._level or window.strip() else None

    def _records(self, window: bytes) -> Generator[Record, None, int]:
        """Whole records of a window; gives where what is needed on begins."""
        places, signs = _brackets(window)
        depth = self._level + np.cumsum(signs)
        if depth.size and int(depth.min()) < 0:
            self.ended = "damaged: a bracket closes what was never opened"
            keep = int(np.argmax(depth < 0))
            places, signs, depth = places[:keep], signs[:keep], depth[:keep]
        shallow = depth - (signs > 0) < self._depth
        begun: tuple[int, int, Path] | None = None
        behind = 0
        for place, sign, level in zip(
            places[shallow].tolist(), signs[shallow].tolist(), depth[shallow].tolist(), strict=True
        ):
            if begun is None:
                path = self._stepped(window, behind, place, opens=sign > 0)
                begun = None if path is None else (level - 1, place, path)
            elif level == begun[0]:
                within = tuple(number for _, number in self._around)
                yield Record(begun[2], within, window[begun[1] : place + 1])
                begun = None
            behind = place + 1
        if begun is not None:
            self._level, at, self._begun = begun
            return at
        self._level = int(depth[-1]) if len(depth) else self._level
        return int(places[-1]) + 1 if len(places) else 0

    def _stepped(self, window: bytes, behind: int, place: int, *, opens: bool) -> Path | None:
        """Go into or out of what a bracket opens or closes; gives the path of a record's begin."""
        if not opens:
            if self._around:
                self._around.pop()
            return None
        path, self._begun = self._begun or self._path(window, behind, place), None
        if window[place] == _OBJECT and self._is_record(path):
            return path
        self._num_opened += 1
        self._around.append((path, self._num_opened))
        return None

    def _path(self, window: bytes, behind: int, place: int) -> Path:
        above = self._around[-1][0] if self._around else ()
        key = _KEY.search(window[max(behind, place - _LONGEST_KEY) : place])
        return (*above, key[1].decode("utf-8", "replace")) if key else above


def _brackets(window: bytes) -> tuple[Places, Places]:
    """Where brackets stand outside of quotes, and whether each opens (1) or closes (-1)."""
    if b"\\" in window:
        window = _ESCAPE.sub(b"__", window)
    octets = np.frombuffer(window, np.uint8)
    lowered = octets | _LOWER
    quoted = np.bitwise_xor.accumulate((octets == _QUOTE).view(np.uint8)).view(np.bool_)
    is_bracket = ((lowered == _OPEN) | (lowered == _CLOSE)) & ~quoted
    places = np.flatnonzero(is_bracket)
    return places, np.where(lowered[places] == _OPEN, 1, -1)


def begins_object(head: bytes) -> bool:
    """Tell whether a file that begins so is one object of JSON, or a line of several."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def json_values(text: str) -> Iterator[object]:
    """Values of JSON that follow each other; ends with `DAMAGED` where one is cut off or damaged.

    Infinity and NaN are read, as Python writes them.
    """
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            yield DAMAGED
            return
        yield value
