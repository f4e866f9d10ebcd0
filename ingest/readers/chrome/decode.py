"""All events of a window at once: by one pass in C, or by decoding each.

Both give the same. The pass in C (`_scan.c`) is the faster by far and knows only what is usual;
where it says no, or was not compiled, each event is decoded.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import polars as pl

from stepscope.ingest.readers.chrome.event import Event
from stepscope.ingest.readers.chrome.frames import TEMPLATE, Events, events_of
from stepscope.ingest.readers.chrome.times import EMPTY, nanoseconds

try:
    from stepscope.ingest.readers.chrome import _scan
except ImportError:  # no compiler was at hand
    _scan = None  # type: ignore[assignment]  # None where it was not compiled

IS_COMPILED = _scan is not None
_events = msgspec.json.Decoder(list[Event])
_string = msgspec.json.Decoder(str)
_UNREADABLE = (RecursionError, msgspec.DecodeError, UnicodeDecodeError)
Window = bytes | memoryview


def events_in(window: Window) -> Events | None:
    """Read objects with commas between them; None where one is not an event as it should be."""
    return (scanned(window) if IS_COMPILED else None) or decoded(window)


def decoded(window: Window) -> Events | None:
    """Decode each event of a window; None where one is not as it should be."""
    try:
        events, num_mended = events_of(_events.decode(b"".join((b"[", window, b"]"))))
    except _UNREADABLE:
        return None
    return None if num_mended else events


@dataclass(frozen=True, slots=True)
class _Column:
    """A column in Arrow's C data interface, to be taken once."""

    schema: object
    array: object

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self.schema, self.array


def scanned(window: Window) -> Events | None:
    """Read a window in one pass; None where it is not as usual."""
    found = _scan.scan(window)
    if found is None:
        return None
    columns, templates, fallbacks, is_ascii = found
    try:
        if not is_ascii:
            str(window, "utf-8")
        known = pl.DataFrame(
            map(_template, templates), dict.fromkeys(TEMPLATE, pl.String), orient="row"
        )
    except _UNREADABLE:
        return None
    rows = pl.DataFrame(
        [pl.Series(name, _Column(schema, array)) for name, schema, array in columns]
    )
    return Events(known, _with_fallbacks(rows, fallbacks))


def _with_fallbacks(rows: pl.DataFrame, fallbacks: list[tuple[int, str, bytes]]) -> pl.DataFrame:
    """Put in times that are not plain numbers."""
    for name in ("ts_ns", "dur_ns"):
        found = [(event, text.decode()) for event, column, text in fallbacks if column == name]
        if found:
            events, texts = zip(*found, strict=True)
            times = nanoseconds(pl.Series(texts, dtype=pl.String))
            rows = rows.with_columns(rows[name].scatter(list(events), times))
    return rows


def _template(values: tuple[bytes | None, ...]) -> tuple[str | None, ...]:
    ph, name, cat, pid, tid = (value or b"" for value in values)
    return _text(ph) or "", _text(name), _text(cat), _unquoted(pid), _unquoted(tid)


def _text(written: bytes) -> str | None:
    if written in (b"", b"null"):
        return None
    return _string.decode(written) if b"\\" in written else written[1:-1].decode()


def _unquoted(written: bytes) -> str | None:
    text = written.decode()
    return None if text in EMPTY else text[1:-1] if text.startswith('"') else text
