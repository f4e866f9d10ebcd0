"""The events of a Chrome JSON file in batches, whatever the layout and the state of the file.

A window of bytes is read in the first of four ways that succeeds:

columns cut after what looks like the last end of an event, and take the columns of all events
        out of it at once (`event_columns`).
whole   cut there, and decode all of it at once. JSON that decodes whole was cut in the right
        place: no need to look inside strings.
exact   count quotes and brackets to find the commas between events; decode each by itself.
pieces  where the brackets don't add up, keep whatever decodes between things that look like
        borders of events.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec
import numpy as np
import polars as pl

from stepscope.ingest.errors import LimitExceeded, TraceError, TruncatedTrace
from stepscope.ingest.limits import DEFAULTS, Limits, raised_by
from stepscope.ingest.readers.event import Event, EventReader
from stepscope.ingest.readers.event_columns import columns_of, frame_of

CUT_OFF = "cut off by the end of the file"
NOT_UTF8 = "bytes that are not UTF-8 replaced"
_TAIL_BYTES = 64 << 10
_BORDER = re.compile(rb"\}\s*,\s*(?=\{)")
_PIECE = re.compile(rb'(?<=[}\]])\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|dur|id|args)")')
_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
_EVENT = re.compile(rb'\{\s*"ph"')
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_BRACKETS = bytes(1 if c in b"[{" else 255 if c in b"]}" else 0 for c in range(256))
_batch = msgspec.json.Decoder(list[Event])
_json = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class _Cut:
    """Where the events of a window lie: its separating commas, and the bracket that ends them."""

    commas: list[int]
    end: int | None


class EventStream:
    """Iterates over batches of events, frames as `event_columns` makes them.

    What else the file holds is known afterwards.

    metadata    the top-level fields beside the events
    reader      what was skipped and repaired, by reason
    cut_off     the file ends before its events do
    beyond      the limit that ended it, if one did
    notes       sentences for the report
    """

    def __init__(self, blocks: Iterable[bytes], where: str, limits: Limits = DEFAULTS) -> None:
        self.metadata: dict[str, Any] = {}
        self.reader = EventReader()
        self.cut_off = False
        self.beyond: str | None = None
        self.notes: list[str] = []
        self.num_bytes = 0
        self._blocks = iter(blocks)
        self._where = where
        self._limits = limits
        self._is_array = False
        self._ended = False

    def __iter__(self) -> Iterator[pl.DataFrame]:
        window: bytes | None = self._head()
        left = self._limits.events
        while window is not None:
            batch, window = self._take(window)
            frame = self._frame(batch) if isinstance(batch, list) else batch
            left -= len(frame)
            if left < 0:
                self._stop(f"more than {self._limits.events:,} events", "events")
                frame, window = frame.head(len(frame) + left), None
            if len(frame):
                yield frame

    def _stop(self, what: str, limit: str) -> None:
        self.cut_off = True
        self.beyond = f"{what} ({raised_by(limit)})"

    def _frame(self, events: list[Event]) -> pl.DataFrame:
        frame, num_mended = frame_of(events)
        self.reader.repaired[NOT_UTF8] += num_mended
        return frame

    def _more(self) -> bytes:
        block = next(self._blocks, b"")
        self.num_bytes += len(block)
        self._ended = not block
        return block

    # -- before the events -------------------------------------------------------------------

    def _head(self) -> bytes:
        window = self._more().removeprefix(b"\xef\xbb\xbf").lstrip()
        if window.startswith(b"["):
            self._is_array = True
            return window[1:]
        searched = 0
        while True:
            for match in islice(_ARRAY.finditer(window, searched), 16):
                if self._open(window[: match.end()]):
                    return window[match.end() :]
            searched = max(0, len(window) - _TAIL_BYTES)
            if len(window) > self._limits.event:
                what = f"no traceEvents in the first {self._limits.event:,} bytes"
                raise LimitExceeded(what, where=self._where, todo=raised_by("event"))
            block = self._more()
            if not block:
                raise self._without_events(window)
            window += block

    def _open(self, head: bytes) -> bool:
        fields = _object(head + b"]}")
        if fields is None or fields[0].pop("traceEvents", None) != []:
            return False
        self.metadata.update(fields[0])
        return True

    def _without_events(self, window: bytes) -> TraceError:
        if window.startswith(b"{") and _object(window) is None:
            what = f"cut off after {self.num_bytes} bytes, before the first event"
            return TruncatedTrace(what, where=self._where, todo="record or copy it again")
        return TraceError("no traceEvents array in it", where=self._where)

    # -- the events --------------------------------------------------------------------------

    def _take(self, window: bytes) -> tuple[list[Event] | pl.DataFrame, bytes | None]:
        """The events of a window, and the window to go on with (None at the end)."""
        if not self._ended and (border := _last_border(window)):
            batch = _at_once(window[: border.start() + 1])
            if batch is not None:
                return batch, window[border.end() :] + self._more()
        cut = _exact(window)
        if cut is None:
            return self._pieces(window)
        if cut.end is not None:
            return self._last(window, cut.end, cut.commas)
        if self._ended:
            return self._cut_off(window, cut.commas)
        if not cut.commas:
            return self._grow(window)
        texts = _between(window, cut.commas)
        return self._each(texts[:-1]), texts[-1] + self._more()

    def _each(self, texts: list[bytes]) -> list[Event]:
        return [event for text in texts for event in self._events_in(text)]

    def _events_in(self, text: bytes) -> list[Event]:
        event, reason = self.reader.attempt(text)
        if event is not None:
            return [event]
        if reason == "not JSON" and len(pieces := _PIECE.split(text)) > 1:
            return [event for piece in pieces if (event := self._first_in(piece))]
        self.reader.skipped[reason] += 1
        return []

    def _grow(self, window: bytes) -> tuple[list[Event], bytes | None]:
        """Double a window in which no event ends."""
        if len(window) > self._limits.event:
            return self._pieces(window)
        parts = [window]
        wanted = max(len(window), 1)
        while wanted > 0 and (block := self._more()):
            parts.append(block)
            wanted -= len(block)
        return [], b"".join(parts)

    def _pieces(self, window: bytes) -> tuple[list[Event], bytes | None]:
        pieces = _PIECE.split(window)
        if not self._ended and len(pieces) == 1:
            if len(window) > self._limits.event:
                at = self.num_bytes - len(window)
                self._stop(f"an event of more than {self._limits.event:,} bytes at {at:,}", "event")
                return [], None
            return self._grow(window)
        rest = None if self._ended else pieces.pop() + self._more()
        return [event for piece in pieces if (event := self._first_in(piece))], rest

    def _first_in(self, piece: bytes) -> Event | None:
        return self.reader.read(_first(piece))

    # -- after the events --------------------------------------------------------------------

    def _last(self, window: bytes, end: int, commas: list[int]) -> tuple[list[Event], bytes | None]:
        """Everything up to the bracket that ends the events, if it truly ends them."""
        tail = window[end + 1 :]
        while len(tail) < self._limits.event and (block := self._more()):
            tail += block
        if not self._close(tail):
            return self._pieces(window[: end + 1] + tail)
        texts = _between(window[:end], commas)
        return self._each(texts if texts[-1].strip() else texts[:-1]), None

    def _close(self, tail: bytes) -> bool:
        if self._is_array:
            return not tail.strip()
        fields = _object(b'{"traceEvents":[]' + tail)
        if fields is None:
            self.cut_off = not _EVENT.search(tail)
            return self.cut_off
        again = fields[0].pop("traceEvents", [])
        if isinstance(again, list) and again:
            self.reader.skipped["in a second traceEvents"] += len(again)
        self.metadata.update(fields[0])
        return not fields[1].strip()

    def _cut_off(self, window: bytes, commas: list[int]) -> tuple[list[Event], bytes | None]:
        """The events of a file that ends before its events do."""
        *whole, rest = _between(window, commas)
        *torn, last = _PIECE.split(rest)
        batch = self._each(whole) + [event for text in torn if (event := self._first_in(text))]
        first = _first(last)
        event, _ = self.reader.attempt(first)
        if event is not None:
            batch.append(event)
        elif last.strip():
            self.reader.skipped[CUT_OFF] += 1
        if self._is_array:
            self.notes.append("the array of events has no closing bracket, as the format allows")
        closed = last.lstrip()[len(first) :].lstrip().startswith(b"]")
        self.cut_off = not closed and (not self._is_array or CUT_OFF in self.reader.skipped)
        return batch, None


def _last_border(window: bytes) -> re.Match[bytes] | None:
    """What looks like the border behind the last whole event."""
    borders = list(_BORDER.finditer(window, max(0, len(window) - _TAIL_BYTES)))
    return borders[-1] if borders else None


def _at_once(window: bytes) -> list[Event] | pl.DataFrame | None:
    """All events of a window; None if it does not end where an event does."""
    frame = columns_of(window)
    if frame is not None:
        return frame
    try:
        return _batch.decode(b"[%b]" % window)
    except (RecursionError, UnicodeDecodeError, msgspec.DecodeError):
        return None


def _exact(window: bytes) -> _Cut | None:
    """Commas and end of the list of events, by brackets outside of strings; None if unbalanced."""
    letters = np.frombuffer(_ESCAPE.sub(b"__", window), np.uint8)
    in_string = np.bitwise_xor.accumulate((letters == ord('"')).view(np.uint8)).view(bool)
    step = np.frombuffer(window.translate(_BRACKETS), np.int8)
    places = np.flatnonzero((step != 0) & ~in_string)
    depth = np.cumsum(step[places], dtype=np.int32)
    below = np.flatnonzero(depth < 0)
    end = int(places[below[0]]) if below.size else None
    if end is not None and window[end : end + 1] != b"]":
        return None
    commas = np.flatnonzero((letters == ord(",")) & ~in_string)
    level = np.concatenate(([0], depth))[np.searchsorted(places, commas)]
    outer = commas[level == 0]
    return _Cut([int(comma) for comma in outer if end is None or comma < end], end)


def _between(window: bytes, commas: list[int]) -> list[bytes]:
    starts = [0, *(comma + 1 for comma in commas)]
    ends = [*commas, len(window)]
    return [window[start:end] for start, end in zip(starts, ends, strict=True)]


def _first(piece: bytes) -> bytes:
    """The first JSON value in a piece, without what follows it; the piece when there is none."""
    text = piece.decode("utf-8", "surrogateescape").lstrip()
    try:
        _, end = _json.raw_decode(text)
    except (ValueError, RecursionError):
        return piece
    return text[:end].encode("utf-8", "surrogateescape")


def _object(text: bytes) -> tuple[dict[str, Any], str] | None:
    """The JSON object at the start of `text` and what follows it; None when there is none."""
    try:
        fields, end = _json.raw_decode(decoded := text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return (fields, decoded[end:]) if isinstance(fields, dict) else None
