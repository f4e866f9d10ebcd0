"""Events of a text whose brackets don't add up: what decodes between what looks like borders."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stepscope.ingest.readers.chrome.cuts import first_value
from stepscope.ingest.readers.chrome.event import Event, EventReader

_KEYS = rb'"(?:ph|name|cat|pid|tid|ts|dur|id|args)"'
_BORDER = re.compile(rb"(?<=[}\]])\s*,\s*(?=\{\s*" + _KEYS + rb")")
_BEGIN = re.compile(rb"\{\s*" + _KEYS)
_MOST_TRIES = 32


def pieces(text: bytes) -> list[bytes]:
    """Cut a text at the commas that look like borders between events."""
    return _BORDER.split(text)


def events_in_piece(piece: bytes, reader: EventReader) -> Iterator[Event]:
    """The event at which a piece begins, and those that follow it without a border.

    One file behind another is such a place: between the last event of the one and the first of the
    other stands what else they say.
    """
    first = first_value(piece)
    event = reader.read(first)
    if event is None:
        return
    yield event
    rest, at = piece.lstrip()[len(first) :], 0
    for _ in range(_MOST_TRIES):
        match = _BEGIN.search(rest, at)
        if match is None:
            return
        text = first_value(rest[match.start() :])
        event, _ = reader.attempt(text)
        is_event = event is not None and event.ph
        at = match.start() + len(text) if is_event else match.end()
        if event is not None and is_event:
            yield event
