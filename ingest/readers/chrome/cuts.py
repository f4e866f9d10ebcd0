"""Where events of a Chrome JSON file are cut when it must be found out by looking at each byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepscope.ingest.readers.chrome.event import Event, EventReader

_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_BRACKETS = bytes(1 if c in b"[{" else 255 if c in b"]}" else 0 for c in range(256))
_KEYS = rb'"(?:ph|name|cat|pid|tid|ts|dur|id|args)"'
_BORDER = re.compile(rb"(?<=[}\]])\s*,\s*(?=\{\s*" + _KEYS + rb")")
_BEGIN = re.compile(rb"\{\s*" + _KEYS)
_MOST_TRIES = 32
_json = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Cut:
    """Where the events of a window lie: its separating commas, and the bracket that ends them."""

    commas: list[int]
    end: int | None


def exact_cut(window: bytes) -> Cut | None:
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
    return Cut([int(comma) for comma in outer if end is None or comma < end], end)


def between(window: bytes, commas: list[int]) -> list[bytes]:
    """What stands before, between and behind the commas."""
    starts = [0, *(comma + 1 for comma in commas)]
    ends = [*commas, len(window)]
    return [window[start:end] for start, end in zip(starts, ends, strict=True)]


def first_value(piece: bytes) -> bytes:
    """The first JSON value in a piece, without what follows it; the piece when there is none."""
    text = piece.decode("utf-8", "surrogateescape").lstrip()
    try:
        _, end = _json.raw_decode(text)
    except (ValueError, RecursionError):
        return piece
    return text[:end].encode("utf-8", "surrogateescape")


def first_object(text: bytes) -> tuple[dict[str, Any], str] | None:
    """The JSON object at the start of `text` and what follows it; None when there is none."""
    try:
        fields, end = _json.raw_decode(decoded := text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return (fields, decoded[end:]) if isinstance(fields, dict) else None


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
