"""Events by columns: a window of events is taken apart by a few searches over all of it.

Writers of trace events lay one out like the other. So the window is split where one event ends and
the next begins, and what stands before an event's `args` is split at its quotes; the places of
keys and values are learned from one event, and hold for all that have the same keys and punctuation
at the same places. What is like none of them is left to whoever reads events one by one.

This is safe because the window as a whole was decoded: it is JSON, and has as many events as there
are pieces. In JSON a quote before a key is never part of a string, where it would be escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import polars as pl

from stepscope.ingest.readers.event import Event

TEXTS = ("ph", "name", "cat")
RAWS = ("ts", "dur", "pid", "tid", "id", "id2", "args")
MAX_SHAPES = 12
"""Layouts of an event that are learned in a window; a file has a handful."""
MAX_QUOTES = 64
_OPENING = re.compile(rb'\s*(\{\s*"(\w+)")')
_CONTROL = r"[\x00-\x1f]"
_KEY_FOLLOWS = r'\}\s*,\s*"'
_COLON = re.compile(r"\s*:\s*")
_COMMA = re.compile(r"\s*,?\s*")
_NUMBER = re.compile(r"(\s*:\s*)[^,\s]+(\s*,?\s*)")


class _Nothing(msgspec.Struct, gc=False):
    """An event of which nothing is asked."""


_count = msgspec.json.Decoder(list[_Nothing])
_each = msgspec.json.Decoder(list[Event])


@dataclass(frozen=True, slots=True)
class _Shape:
    """Where an event has its keys, punctuation and values, by the number of the token.

    `numbers` are values without quotes: their token, what stands before them in it, and behind.
    """

    num_tokens: int
    fixed: dict[int, str] = field(default_factory=dict)
    strings: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, tuple[int, str, str]] = field(default_factory=dict)


def columns_of(window: bytes) -> pl.DataFrame | None:
    """Take apart the events in `window`, with commas between them; None where it cannot be done.

    TEXTS are as they are read, RAWS the JSON of their values; empty or null where missing.
    """
    opening = _OPENING.match(window)
    if opening is None:
        return None
    border = re.compile(rb"\}\s*,\s*\{\s*" + re.escape(b'"%b"' % opening[2])).search(window)
    try:
        num_events = len(_count.decode(b"[%b]" % window))
        inside = pl.Series("piece", [window[opening.end() : window.rindex(b"}")]]).cast(pl.String)
        pieces = inside.str.split(border[0].decode()).explode() if border else inside
        events = _taken_apart(pieces, opening[2].decode(), opening[1].decode())
    except (RecursionError, msgspec.DecodeError, UnicodeDecodeError, pl.exceptions.PolarsError):
        return None
    return events if len(events) == num_events else None


def frame_of(events: Sequence[Event]) -> tuple[pl.DataFrame, int]:
    """The same columns of events that were read one by one; and how many texts were not UTF-8."""
    series = [
        pl.Series(name, [getattr(event, name) for event in events], pl.String) for name in TEXTS
    ]
    num_mended = 0
    for name in RAWS:
        column, mended = _utf8(name, [bytes(getattr(event, name)) for event in events])
        series.append(column)
        num_mended += mended
    return pl.DataFrame(series), num_mended


def _utf8(name: str, texts: list[bytes]) -> tuple[pl.Series, int]:
    column = pl.Series(name, texts, pl.Binary)
    try:
        return column.cast(pl.String), 0
    except pl.exceptions.PolarsError:
        mended = [text.decode("utf-8", "replace") for text in texts]
        num = sum("\ufffd" in text for text in mended)
        return pl.Series(name, mended, pl.String), num


def _taken_apart(pieces: pl.Series, key: str, opening: str) -> pl.DataFrame:
    parts = pieces.str.split_exact('"args":', 1).struct.rename_fields(["head", "args"])
    rows = parts.struct.unnest().with_columns(pieces, pl.col("args").str.strip_chars())
    rows = rows.with_row_index("piece_number")
    is_plain = rows.select(_is_plain(key)).to_series()
    todo = rows.filter(is_plain)
    most = rows.filter(is_plain).select(pl.col("head").str.count_matches('"', literal=True).max())
    num_quotes = min(int(most.item() or 0), MAX_QUOTES)
    tokens = todo.select(pl.col("head").str.split_exact('"', num_quotes + 1)).unnest("head")
    frames: list[pl.DataFrame] = []
    for _ in range(MAX_SHAPES):
        shape = _shape(todo["head"][0], key) if len(todo) else None
        if shape is None or shape.num_tokens > num_quotes + 1:
            break
        fits = tokens.select(pl.all_horizontal(*_proofs(shape)).fill_null(value=False)).to_series()
        frames.append(_values(todo.filter(fits), tokens.filter(fits), shape))
        todo, tokens = todo.filter(~fits), tokens.filter(~fits)
    left = pl.concat([rows.filter(~is_plain), todo]).select("piece_number", "piece")
    frames.append(_one_by_one(left, opening))
    return pl.concat(frames).sort("piece_number", maintain_order=True).drop("piece_number")


def _one_by_one(left: pl.DataFrame, opening: str) -> pl.DataFrame:
    """Decode what has no shape; a piece may be several events, where one begins otherwise."""
    numbers: list[int] = []
    events: list[Event] = []
    for number, piece in left.iter_rows():
        decoded = _each.decode(f"[{opening}{piece}}}]".encode())
        events += decoded
        numbers += [number] * len(decoded)
    frame, _ = frame_of(events)
    place = pl.Series("piece_number", numbers, left.schema["piece_number"])
    return frame.select(place, *TEXTS, *RAWS)


def _is_plain(key: str) -> pl.Expr:
    """Whether an event has no escapes or nesting before its args, and nothing behind them."""
    head, args = pl.col("head"), pl.col("args")
    is_flat = args.str.count_matches("{", literal=True) == 1
    is_last = (
        args.str.starts_with("{")
        & args.str.ends_with("}")
        & (is_flat | ~args.str.contains(_KEY_FOLLOWS))
    )
    return (
        ~head.str.contains_any(["\\", "{", "[", "}", "]"])
        & ~pl.col("piece").str.contains(f'"{key}"', literal=True)
        & is_last.fill_null(value=True)
    )


def _shape(head: str, key: str) -> _Shape | None:
    """Learn where the keys and values are from the text of one event between its key and args."""
    tokens = head.split('"')
    shape = _Shape(len(tokens))
    at = 0
    while True:
        if key in shape.strings or key in shape.numbers:
            return None
        if _COLON.fullmatch(tokens[at]) and at + 2 < len(tokens):
            shape.fixed[at] = tokens[at]
            shape.strings[key] = at + 1
            at += 2
            shape.fixed[at] = tokens[at]
            is_sound = _COMMA.fullmatch(tokens[at])
        else:
            is_sound = _NUMBER.fullmatch(tokens[at])
            if is_sound:
                shape.numbers[key] = at, is_sound[1], is_sound[2]
        if not is_sound or (key in TEXTS and key in shape.numbers):
            return None
        if at + 1 >= len(tokens):
            return shape
        if at + 2 >= len(tokens):
            return None
        key = shape.fixed[at + 1] = tokens[at + 1]
        at += 2


def _token(number: int) -> pl.Expr:
    return pl.col(f"field_{number}")


def _proofs(shape: _Shape) -> Iterator[pl.Expr]:
    """What must hold for an event to have the shape."""
    for number, text in shape.fixed.items():
        yield _token(number) == text
    for number, before, behind in shape.numbers.values():
        yield _token(number).str.starts_with(before) & _token(number).str.ends_with(behind)
    for key, number in shape.strings.items():
        if key in TEXTS or key in RAWS:
            yield ~_token(number).str.contains(_CONTROL)
    yield _token(shape.num_tokens).is_null()


def _values(rows: pl.DataFrame, tokens: pl.DataFrame, shape: _Shape) -> pl.DataFrame:
    values = tokens.select(*(_value(shape, name) for name in (*TEXTS, *RAWS[:-1])))
    return pl.concat([rows.select("piece_number"), values, rows.select("args")], how="horizontal")


def _value(shape: _Shape, name: str) -> pl.Expr:
    if name in shape.numbers:
        number, before, behind = shape.numbers[name]
        return _token(number).str.strip_prefix(before).str.strip_suffix(behind).alias(name)
    if name not in shape.strings:
        return pl.lit(None, pl.String).alias(name)
    text = _token(shape.strings[name])
    quoted = pl.concat_str(pl.lit('"'), text, pl.lit('"'))
    return (text if name in TEXTS else quoted).alias(name)
