"""One event of a Chrome JSON file: its fields, and how it is read when it is not quite JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import msgspec
from msgspec import Raw

MISSING = Raw(b"")


class Event(msgspec.Struct, gc=False):
    """An event as it stands in the file; `Raw` fields keep their JSON text (numbers exactly)."""

    ph: str = ""
    name: str | None = None
    cat: str | None = None
    ts: Raw = MISSING
    dur: Raw = MISSING
    pid: Raw = MISSING
    tid: Raw = MISSING
    id: Raw = MISSING
    id2: Raw = MISSING
    args: Raw = MISSING
    bind_id: Raw = MISSING
    flow_in: Raw = MISSING
    flow_out: Raw = MISSING


class _AnyEvent(msgspec.Struct, gc=False):
    """The same with nothing expected of any field."""

    ph: Raw = MISSING
    name: Raw = MISSING
    cat: Raw = MISSING
    ts: Raw = MISSING
    dur: Raw = MISSING
    pid: Raw = MISSING
    tid: Raw = MISSING
    id: Raw = MISSING
    id2: Raw = MISSING
    args: Raw = MISSING
    bind_id: Raw = MISSING
    flow_in: Raw = MISSING
    flow_out: Raw = MISSING


_strict = msgspec.json.Decoder(Event)
_any = msgspec.json.Decoder(_AnyEvent)
_STRING_OR_WORD = re.compile(rb'"(?:[^"\\]|\\.)*+"|-?\b(?:NaN|Infinity)\b', re.DOTALL)
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)
_CONTROL_TO_SPACE = b" " * 32 + bytes(range(32, 256))
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError)


class EventReader:
    """Reads single events, and counts what it had to skip or repair, by reason."""

    def __init__(self) -> None:
        self.skipped: Counter[str] = Counter()
        self.repaired: Counter[str] = Counter()

    def read(self, text: bytes) -> Event | None:
        """The event in `text`, repaired where it must be; None, and counted, when it is none."""
        event, reason = self.attempt(text)
        if event is None:
            self.skipped[reason] += 1
        return event

    def attempt(self, text: bytes) -> tuple[Event | None, str]:
        """The event in `text` or why there is none; only what was repaired is counted."""
        try:
            return _strict.decode(text), ""
        except RecursionError:
            return None, "nested too deep"
        except _UNREADABLE:
            return self._repair(text)

    def _repair(self, text: bytes) -> tuple[Event | None, str]:
        names = []
        for name, repair in _REPAIRS:
            repaired = repair(text)
            if repaired != text:
                names.append(name)
                text = repaired
        try:
            event = _plain(_any.decode(text))
        except RecursionError:
            return None, "nested too deep"
        except _UNREADABLE:
            return None, "not an object" if is_value(text) else "not JSON"
        self.repaired.update(names or ["text field of another type"])
        return event, ""


def _mend_utf8(text: bytes) -> bytes:
    return text.decode("utf-8", "replace").encode()


def _mend_strings_and_words(text: bytes) -> bytes:
    return _STRING_OR_WORD.sub(_mended, text)


def _mended(match: re.Match[bytes]) -> bytes:
    token = match.group()
    if not token.startswith(b'"'):
        return b"null"
    return _ESCAPE.sub(_paired, token.translate(_CONTROL_TO_SPACE))


def _paired(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape["lone"] else escape.group()


_REPAIRS: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("bytes that are not UTF-8 replaced", _mend_utf8),
    ("NaN, control characters or lone surrogates replaced", _mend_strings_and_words),
)


def _plain(event: _AnyEvent) -> Event:
    return Event(
        _text(event.ph) or "", _text(event.name), _text(event.cat),
        event.ts, event.dur, event.pid, event.tid, event.id, event.id2, event.args,
        event.bind_id, event.flow_in, event.flow_out,
    )  # fmt: skip


def _text(raw: Raw) -> str | None:
    """A field as text: a JSON string unescaped, null as None, anything else as it is written."""
    written = bytes(raw).decode()
    if not written or written == "null":
        return None
    if not written.startswith('"'):
        return written
    return msgspec.json.decode(raw, type=str)


def is_value(text: bytes) -> bool:
    """Whether all of a text is one JSON value."""
    try:
        msgspec.json.decode(text)
    except (RecursionError, *_UNREADABLE):
        return False
    return True
