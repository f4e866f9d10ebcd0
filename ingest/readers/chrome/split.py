"""The events of a Chrome JSON file in batches, whatever the layout and the state of the file.

A window of bytes is read in the first of three ways that succeeds:

whole   cut after what looks like the last end of an event, and take all of it apart
        (`decode`). What is JSON was cut in the right place: no need to look inside strings.
        Several windows are read like that at a time.
exact   count quotes and brackets to find the commas between events; decode all between them, or
        each by itself.
pieces  where the brackets don't add up, keep whatever decodes between things that look like
        borders of events.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from stepscope.ingest.errors import LimitExceeded, TraceError, TruncatedTrace
from stepscope.ingest.limits import DEFAULTS, Limits, raised_by
from stepscope.ingest.readers.chrome.cuts import (
    between,
    events_in_piece,
    exact_cut,
    first_object,
    first_value,
    pieces,
)
from stepscope.ingest.readers.chrome.decode import events_in
from stepscope.ingest.readers.chrome.event import Event, EventReader
from stepscope.ingest.readers.chrome.frames import Events, events_of
from stepscope.ingest.readers.encodings.buffers import Buffers
from stepscope.ingest.readers.encodings.inflate import Contents

CUT_OFF = "cut off by the end of the file"
NOT_UTF8 = "bytes that are not UTF-8 replaced"
BEHIND = "more stands behind the end of the events: those among it are read, the rest is left out"
WINDOW_BYTES = 12 << 20
NUM_THREADS = 2
_TAIL_BYTES = 64 << 10
_MOST_TRIES = 32
_BORDER = re.compile(rb"\}\s*,\s*(?=\{)")
_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
_EVENT = re.compile(rb'\{\s*"ph"')
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Digested(Generic[T]):
    """What was made of so many events, and how they are had again."""

    num_events: int
    digest: T
    again: Callable[[], Events | None]


_Sent = tuple[memoryview, Future[_Digested[T] | None]]
"""A window with the comma behind it, and what will be made of it."""


class EventStream(Generic[T]):
    """Iterates over what `digest` makes of the events of each window, in the order of the file.

    What else the file holds is known afterwards.

    buffers     what was read of its contents
    metadata    the top-level fields beside the events
    reader      what was skipped and repaired, by reason
    cut_off     the file ends before its events do
    beyond      the limit that ended it, if one did
    notes       sentences for the report
    """

    def __init__(
        self,
        contents: Contents,
        where: str,
        digest: Callable[[Events], T],
        limits: Limits = DEFAULTS,
    ) -> None:
        self.metadata: dict[str, Any] = {}
        self.reader = EventReader()
        self.cut_off = False
        self.beyond: str | None = None
        self.notes: list[str] = []
        self.buffers = Buffers(contents)
        self._where = where
        self._limits = limits
        self._digest = digest
        self._is_array = False

    def __iter__(self) -> Iterator[T]:
        left = self._limits.events
        for each in self._digested():
            left -= each.num_events
            if left >= 0:
                yield each.digest
                continue
            self._stop(f"more than {self._limits.events:,} events", "events")
            first = left + each.num_events
            if first and (events := each.again()):
                yield self._digest(events.head(first))
            return

    def _stop(self, what: str, limit: str) -> None:
        self.cut_off = True
        self.beyond = f"{what} ({raised_by(limit)})"

    def _digested(self) -> Iterator[_Digested[T]]:
        window: bytes | None = self._head()
        with ThreadPoolExecutor(NUM_THREADS) as pool:
            while window is not None:
                window = yield from self._ahead(window, pool)
                batches, window = self._take(window)
                for events in filter(len, batches):
                    again = partial(events.head, len(events))
                    yield _Digested(len(events), self._digest(events), again)

    def _ahead(
        self, text: bytes | memoryview, pool: ThreadPoolExecutor
    ) -> Generator[_Digested[T], None, bytes]:
        """Read whole windows, several at a time; gives the text at which that ends."""
        sent: deque[_Sent[T]] = deque()
        num_bytes = min(WINDOW_BYTES, self._limits.event)
        while True:
            while len(sent) < NUM_THREADS + 1 and (end := _last_border(text)):
                window = memoryview(text)
                future = pool.submit(self._whole, window[: end.start() + 1])
                sent.append((window[: end.end()], future))
                text = self.buffers.more(num_bytes, window[end.end() :])
            if not sent:
                return bytes(text)
            digested = sent[0][-1].result()
            if digested is None:
                return _joined(sent) + text
            sent.popleft()
            yield digested

    def _whole(self, window: memoryview) -> _Digested[T] | None:
        events = events_in(window)
        if events is None:
            return None
        return _Digested(len(events), self._digest(events), partial(events_in, window))

    def _framed(self, decoded: list[Event]) -> Events:
        events, num_mended = events_of(decoded)
        self.reader.repaired[NOT_UTF8] += num_mended
        return events

    # -- before the events -------------------------------------------------------------------

    def _head(self) -> bytes:
        window = bytes(self.buffers.more()).removeprefix(b"\xef\xbb\xbf").lstrip()
        if window.startswith(b"["):
            self._is_array = True
            return window[1:]
        searched = 0
        tries = iter(range(_MOST_TRIES))  # each reads all that is before
        while True:
            for match, _ in zip(_ARRAY.finditer(window, searched), tries, strict=False):
                if self._open(window[: match.end()]):
                    return window[match.end() :]
            searched = max(0, len(window) - _TAIL_BYTES)
            if len(window) > self._limits.event:
                what = f"no traceEvents in the first {self._limits.event:,} bytes"
                raise LimitExceeded(what, where=self._where, todo=raised_by("event"))
            if not (block := self.buffers.more()):
                raise self._without_events(window)
            window += block

    def _open(self, head: bytes) -> bool:
        fields = first_object(head + b"]}")
        if fields is None or fields[0].pop("traceEvents", None) != []:
            return False
        self.metadata.update(fields[0])
        return True

    def _without_events(self, window: bytes) -> TraceError:
        if window.startswith(b"{") and first_object(window) is None:
            what = f"cut off after {self.buffers.num_bytes} bytes, before the first event"
            return TruncatedTrace(what, where=self._where, todo="record or copy it again")
        return TraceError("it has no traceEvents array", where=self._where)

    # -- the events --------------------------------------------------------------------------

    def _take(self, window: bytes) -> tuple[list[Events], bytes | None]:
        """The events of a window, and the window to go on with (None at the end)."""
        cut = exact_cut(window)
        if cut is None:
            return self._pieces(window)
        if cut.end is not None:
            return self._last(window, cut.end, cut.commas)
        if self.buffers.has_ended:
            return self._cut_off(window, cut.commas)
        if not cut.commas:
            return self._grow(window)
        texts = between(window, cut.commas)
        return self._each(texts[:-1]), texts[-1] + self.buffers.more()

    def _each(self, texts: list[bytes]) -> list[Events]:
        events = events_in(b",".join(texts))
        return [events or self._framed([e for text in texts for e in self._events_in(text)])]

    def _events_in(self, text: bytes) -> list[Event]:
        event, reason = self.reader.attempt(text)
        if event is not None:
            return [event]
        if reason == "not JSON" and len(found := pieces(text)) > 1:
            return self._events_of(found)
        self.reader.skipped[reason] += 1
        return []

    def _grow(self, window: bytes) -> tuple[list[Events], bytes | None]:
        """Double a window in which no event ends."""
        if len(window) > self._limits.event:
            return self._pieces(window)
        return [], bytes(self.buffers.more(max(len(window), 1), window))

    def _pieces(self, window: bytes) -> tuple[list[Events], bytes | None]:
        found = pieces(window)
        if not self.buffers.has_ended and len(found) == 1:
            if len(window) > self._limits.event:
                at = self.buffers.num_bytes - len(window)
                self._stop(f"an event of more than {self._limits.event:,} bytes at {at:,}", "event")
                return [], None
            return self._grow(window)
        rest = None if self.buffers.has_ended else found.pop() + self.buffers.more()
        return [self._framed(self._events_of(found))], rest

    def _events_of(self, found: list[bytes]) -> list[Event]:
        return [event for piece in found for event in events_in_piece(piece, self.reader)]

    # -- after the events --------------------------------------------------------------------

    def _last(
        self, window: bytes, end: int, commas: list[int]
    ) -> tuple[list[Events], bytes | None]:
        """Everything up to the bracket that ends the events, if it truly ends them."""
        tail = window[end + 1 :]
        while len(tail) < self._limits.event and (block := self.buffers.more()):
            tail += block
        if not self._close(tail):
            return self._pieces(window[: end + 1] + tail)
        texts = between(window[:end], commas)
        return self._each(texts if texts[-1].strip() else texts[:-1]), None

    def _close(self, tail: bytes) -> bool:
        if self._is_array:
            return self._is_all(tail)
        fields = first_object(b'{"traceEvents":[]' + tail)
        if fields is None:
            self.cut_off = not _EVENT.search(tail)
            return self.cut_off
        again = fields[0].pop("traceEvents", [])
        if isinstance(again, list) and again:
            self.reader.skipped["in a second traceEvents"] += len(again)
        self.metadata.update(fields[0])
        return self._is_all(fields[1])

    def _is_all(self, rest: bytes | str) -> bool:
        """Whether nothing stands behind the end; that something does is said once."""
        if rest.strip() and BEHIND not in self.notes:
            self.notes.append(BEHIND)
        return not rest.strip()

    def _cut_off(self, window: bytes, commas: list[int]) -> tuple[list[Events], bytes | None]:
        """The events of a file that ends before its events do."""
        *whole, rest = between(window, commas)
        *torn, last = pieces(rest)
        found = self._events_of(torn)
        first = first_value(last)
        event, _ = self.reader.attempt(first)
        if event is not None:
            found.append(event)
        elif last.strip():
            self.reader.skipped[CUT_OFF] += 1
        if self._is_array:
            self.notes.append("the array of events has no closing bracket, as the format allows")
        closed = last.lstrip()[len(first) :].lstrip().startswith(b"]")
        self.cut_off = not closed and (not self._is_array or CUT_OFF in self.reader.skipped)
        return [*self._each(whole), self._framed(found)], None


def _joined(sent: Iterable[_Sent[T]]) -> bytes:
    """The text of windows that must be read otherwise, as they are not what they looked like."""
    for _, future in sent:
        future.cancel()
    return b"".join(window for window, _ in sent)


def _last_border(window: bytes | memoryview) -> re.Match[bytes] | None:
    """What looks like the border behind the last whole event."""
    borders = list(_BORDER.finditer(window, max(0, len(window) - _TAIL_BYTES)))
    return borders[-1] if borders else None
