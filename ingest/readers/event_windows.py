"""All events of a window at once: by one pass in C, or by decoding each.

Both give the same. The pass in C (`_scan.c`) is the faster by far and knows only what is usual;
where it says no, or was not compiled, each event is decoded.
"""

from __future__ import annotations

import threading

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.ingest.readers.chrome_times import EMPTY, nanoseconds
from stepscope.ingest.readers.event import Event
from stepscope.ingest.readers.event_frames import FORM, NUMBERS, Events, events_of, on_one_line

try:
    from stepscope.ingest.readers import _scan
except ImportError:  # no compiler was at hand
    _scan = None  # type: ignore[assignment]

IS_COMPILED = _scan is not None
SMALL_BYTES = 8 << 10
"""Up to here it takes longer to lend arrays than to decode each event."""
_EVENT_BYTES = 32
"""A window has at most one event for so many bytes, or its events are decoded."""
_LEAST_BYTES = 64 << 10
_HAS_TS, _TS_OK, _HAS_DUR, _DUR_OK, _HAS_ID, _HAS_ARGS = (1 << bit for bit in range(6))
_KEYS = ("ph", "name", "cat", "pid", "tid", "ts", "dur", "id", "id2")
_WORDS_OF_FORM = 1 + 2 * len(FORM)
_events = msgspec.json.Decoder(list[Event])
_string = msgspec.json.Decoder(str)
_UNREADABLE = (RecursionError, msgspec.DecodeError, UnicodeDecodeError)
Window = bytes | memoryview
Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]


def events_in(window: Window) -> Events | None:
    """Read objects with commas between them; None where one is not an event as it should be."""
    if _scan is None or len(window) <= SMALL_BYTES:
        return decoded(window)
    return scanned(window) or decoded(window)


def decoded(window: Window) -> Events | None:
    """Decode each event of a window; None where one is not as it should be."""
    try:
        events, num_mended = events_of(_events.decode(b"".join((b"[", window, b"]"))))
    except _UNREADABLE:
        return None
    return None if num_mended else events


class _Room(threading.local):
    """Arrays of a thread that a window is read into, kept for its next window.

    numbers     ts, dur, correlation, External id, ends of args and of ids; a row for each
    forms       hash, places and sizes of `FORM` in the window
    odd         event, key, place and size of values that are left to us
    """

    num_bytes = -1

    def lend(self, num_bytes: int) -> None:
        """Have room for a window of so many bytes."""
        if self.num_bytes >= num_bytes:
            return
        self.num_bytes = num_bytes = max(num_bytes, _LEAST_BYTES)
        most = num_bytes // _EVENT_BYTES
        self.numbers: Ints = np.empty((6, most), np.int64)
        self.form: Words = np.empty(most, np.uint32)
        self.flags: Bytes = np.empty(most, np.uint8)
        self.args: Bytes = np.empty(num_bytes, np.uint8)
        self.ids: Bytes = np.empty(num_bytes, np.uint8)
        self.forms: Words = np.empty((most, _WORDS_OF_FORM), np.uint32)
        self.table: Words = np.empty(1 << (4 * most).bit_length(), np.uint32)
        self.odd: Words = np.empty((most, 4), np.uint32)


_room = _Room()


def scanned(window: Window) -> Events | None:
    """Read a window in one pass; None where it is not as usual."""
    _room.lend(len(window))
    room = _room
    found = _scan.scan(
        window, room.numbers, room.form, room.flags, room.args, room.ids, room.forms, room.table,
        room.odd,
    )  # fmt: skip
    if found is None:
        return None
    num, num_forms, num_odd, args_bytes, id_bytes, is_ascii = found
    view = memoryview(window)
    try:
        if not is_ascii:
            str(view, "utf-8")
        forms = _forms(view, room.forms[:num_forms, 1:].tolist())
    except _UNREADABLE:
        return None
    # Polars takes arrays as they are, and these are lent to the next window.
    numbers, form = room.numbers[:, :num].copy(), room.form[:num].copy()
    args, ids = room.args[:args_bytes].tobytes(), room.ids[:id_bytes].tobytes()
    rows = _rows(numbers, form, room.flags[:num], args, ids)
    return Events(forms, _with_odd(rows, view, room.odd[:num_odd]))


def _rows(numbers: Ints, form: Words, flags: Bytes, args: bytes, ids: bytes) -> pl.DataFrame:
    """`Events.rows` but for what is odd."""
    names = ("ts_ns", "dur_ns", *NUMBERS, "args", "id")
    columns = {"form": form, "flags": flags, **dict(zip(names, numbers, strict=True))}
    return pl.DataFrame(columns).select(
        "form",
        _having("ts_ns", _TS_OK),
        _having("dur_ns", _DUR_OK),
        _has(_HAS_TS).alias("has_ts"),
        _has(_HAS_DUR).alias("has_dur"),
        _cut("id", ids, _HAS_ID),
        pl.lit(None, pl.String).alias("id2"),
        _cut("args", args, _HAS_ARGS),
        *(pl.when(pl.col(name) >= 0).then(name) for name in NUMBERS),
    )


def _has(flag: int) -> pl.Expr:
    return pl.col("flags") & flag != 0


def _having(name: str, flag: int) -> pl.Expr:
    return pl.when(_has(flag)).then(name)


def _cut(name: str, text: bytes, flag: int) -> pl.Expr:
    """Texts that stand one behind the other, by where they end; null for what has none."""
    start = pl.col(name).shift(fill_value=0)
    cut = pl.lit(pl.Series([text])).first().bin.slice(start, pl.col(name) - start)
    return pl.when(_has(flag)).then(cut.cast(pl.String)).alias(name)


def _with_odd(rows: pl.DataFrame, window: memoryview, odd: Words) -> pl.DataFrame:
    """Put in times that are no plain numbers, and ids that are objects."""
    for key in np.unique(odd[:, 1]).tolist():
        chosen = odd[odd[:, 1] == key]
        at = pl.Series(chosen[:, 0])
        texts = pl.Series(_slices(window, chosen[:, 2:]), dtype=pl.Binary).cast(pl.String)
        if _KEYS[key] == "id2":
            values = texts.to_frame("id2").select(on_one_line("id2")).to_series()
            rows = rows.with_columns(rows["id2"].scatter(at, values))
        else:
            name = f"{_KEYS[key]}_ns"
            rows = rows.with_columns(rows[name].scatter(at, nanoseconds(texts)))
    return rows


def _forms(window: memoryview, places: list[list[int]]) -> pl.DataFrame:
    """Forms by where their values stand in the window: places first, sizes behind."""
    num = len(FORM)
    values = [
        [bytes(window[at : at + size]) for at, size in zip(form[:num], form[num:], strict=True)]
        for form in places
    ]
    rows = [
        (_text(ph) or "", _text(name), _text(cat), _unquoted(pid), _unquoted(tid))
        for ph, name, cat, pid, tid in values
    ]
    return pl.DataFrame(rows, dict.fromkeys(FORM, pl.String), orient="row")


def _text(written: bytes) -> str | None:
    if written in (b"", b"null"):
        return None
    return _string.decode(written) if b"\\" in written else written[1:-1].decode()


def _unquoted(written: bytes) -> str | None:
    text = written.decode()
    return None if text in EMPTY else text[1:-1] if text.startswith('"') else text


def _slices(window: memoryview, places: Words) -> list[bytes]:
    return [bytes(window[at : at + size]) for at, size in places.tolist()]
