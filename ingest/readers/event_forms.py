"""Events by forms: a window of events is taken apart by a few searches over all of it.

It is cut where one event ends and the next begins, and each event around what differs between
events (`event_layout`). What is left is few different texts, the forms, which are decoded. What
cannot be cut like that is decoded as it is.

This gives what decoding each event gives. The window as a whole is JSON, where the quote before a
key is never part of a string: it would be escaped. So the cuts before keys are outside of strings.
A form that decodes, with a mark for each value found again as the value of its key, shows that the
cuts are at the top level of an event; values that are numbers and args that are one object show
that the event ends where the piece does, and that the next piece begins with an event.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import polars as pl

from stepscope.ingest.readers.chrome_times import exact_ns
from stepscope.ingest.readers.event import MISSING, Event
from stepscope.ingest.readers.event_frames import (
    Events,
    events_of,
    forms_of,
    numbered,
    on_one_line,
)
from stepscope.ingest.readers.event_layout import SLOTS, Layout, cut, layout_of

MAX_LAYOUTS = 12
"""Layouts of an event that are learned in a window; a file has a handful."""
SAMPLE = 16
"""Events among which one is looked for that has everything."""
_OPENING = re.compile(rb'\[\s*(\{\s*("\w+"))')
_MARKS = {key: f'"\x7f{key}"' for key in SLOTS}
_json = msgspec.json.Decoder(msgspec.Raw)
_event = msgspec.json.Decoder(Event)
_events = msgspec.json.Decoder(list[Event])
_UNREADABLE = (RecursionError, msgspec.DecodeError, UnicodeDecodeError)


def taken_apart(window: bytes) -> Events | None:
    """Take apart a JSON array of events; None where it cannot be done."""
    opening = _OPENING.match(window)
    if opening is None:
        return None
    border = re.compile(rb"\}\s*,\s*\{\s*" + re.escape(opening[2])).search(window)
    try:
        _json.decode(window)
        pieces = _pieces(window, opening.end(), border[0] if border else None)
        return _by_layouts(pieces, opening[1].decode())
    except (*_UNREADABLE, pl.exceptions.PolarsError):
        return None


def decoded(window: bytes) -> Events | None:
    """Decode each event of a JSON array; None where one is not as it should be."""
    try:
        events, num_mended = events_of(_events.decode(window))
    except _UNREADABLE:
        return None
    return None if num_mended else events


def _pieces(window: bytes, first: int, border: bytes | None) -> pl.DataFrame:
    """What is between the borders of a window: number and text."""
    whole = pl.Series("window", [window])
    ends = [window.rindex(b"}")]
    starts = [first]
    bounds = pl.DataFrame({"start": starts, "end": ends}, schema=dict.fromkeys(_BOUNDS, pl.Int64))
    if border:
        found = whole.cast(pl.String).str.find_many([border.decode()]).explode().cast(pl.Int64)
        bounds = pl.DataFrame(
            {
                "start": bounds["start"].append(found + len(border)),
                "end": found.append(bounds["end"]),
            }
        )
    text = pl.lit(whole).first().bin.slice(pl.col("start"), pl.col("end") - pl.col("start"))
    return bounds.select(text=text.cast(pl.String)).with_row_index("number")


_BOUNDS = ("start", "end")


def _by_layouts(pieces: pl.DataFrame, opening: str) -> Events:
    todo = pieces
    found: list[Events] = []
    for _ in range(MAX_LAYOUTS):
        layout = _fullest(todo["text"].head(SAMPLE))
        if layout is None:
            break
        alike, others = cut(todo, layout)
        events, unproved = _proved(alike, layout, opening)
        if not len(events):
            break
        found.append(events)
        todo = pl.concat([others, pieces[unproved]])
    return _in_order([*found, _one_by_one(todo, opening)] if len(todo) else found)


def _fullest(events: pl.Series) -> Layout | None:
    """The layout with the most slots; one with fewer may fit what has more, and proves nothing."""
    layouts = [layout for event in events if (layout := layout_of(event))]
    return max(layouts, key=lambda layout: len(layout.slots), default=None)


def _proved(alike: pl.DataFrame, layout: Layout, opening: str) -> tuple[Events, pl.Series]:
    """Rows of events that were cut alike, and the numbers of those for which that is not sound."""
    parts = layout.parts()
    form, distinct = numbered(alike.select(pl.col(parts).cast(pl.Categorical)))
    texts = distinct.cast(pl.String).rows()
    found = [_decoded(opening + layout.with_values(text, _MARKS) + "}", layout) for text in texts]
    forms = forms_of([event or Event() for event in found])
    is_form = pl.Series([event is not None for event in found], dtype=pl.Boolean)
    rows = alike.select("number", form, *_values(layout.keys))
    sound = is_form.gather(form) & _are_sound(rows, layout.keys)
    unproved = rows["number"].filter(~sound)
    if len(unproved):
        rows = rows.filter(sound)
    return Events(forms, rows.with_columns(on_one_line("args"))), unproved


def _decoded(text: str, layout: Layout) -> Event | None:
    """A form as an event; None unless each mark is the value of its key, and found nowhere else."""
    try:
        event = _event.decode(text)
    except _UNREADABLE:
        return None
    marks = {key: _MARKS[key].encode() if key in layout.keys else b"" for key in SLOTS}
    is_sound = event.id2 == MISSING and all(
        bytes(getattr(event, key)) == mark and text.count(_MARKS[key]) == bool(mark)
        for key, mark in marks.items()
    )
    return event if is_sound else None


def _values(keys: list[str]) -> Iterator[pl.Expr]:
    for name in ("ts", "dur"):
        has = name in keys
        yield (exact_ns(pl.col(name)) if has else pl.lit(None, pl.Int64)).alias(f"{name}_ns")
        yield pl.lit(has).alias(f"has_{name}")
    yield (pl.col("id") if "id" in keys else pl.lit(None, pl.String)).alias("id")
    yield pl.lit(None, pl.String).alias("id2")
    args = pl.col("args").str.strip_chars_end() if "args" in keys else pl.lit(None, pl.String)
    yield args.alias("args")


def _are_sound(rows: pl.DataFrame, keys: list[str]) -> pl.Series:
    """Whether times and ids are numbers and args are one object."""
    times = [pl.col(f"{key}_ns").is_not_null() for key in ("ts", "dur") if key in keys]
    ids = [pl.col("id").cast(pl.Int64, strict=False).is_not_null()] * ("id" in keys)
    sound = rows.select(pl.all_horizontal(pl.lit(value=True), *times, *ids)).to_series()
    return sound & _are_objects(rows["args"]) if "args" in keys else sound


def _are_objects(texts: pl.Series) -> pl.Series:
    """Whether each text is one JSON object, given that it begins a value and a `}` follows it.

    One that holds no other object ends with its only bracket, or else what follows would not fit.
    """
    bracketed = texts.str.starts_with("{") & texts.str.ends_with("}")
    nested = (bracketed & (texts.str.count_matches("{", literal=True) > 1)).arg_true()
    if nested.is_empty():
        return bracketed
    return bracketed.scatter(nested, [_is_json(text) for text in texts.gather(nested)])


def _is_json(text: str) -> bool:
    try:
        _json.decode(text)
    except _UNREADABLE:
        return False
    return True


def _one_by_one(rest: pl.DataFrame, opening: str) -> Events:
    """Decode what was not cut; a piece may be several events, where one begins otherwise."""
    numbers: list[int] = []
    events: list[Event] = []
    for number, piece in rest.iter_rows():
        several = _events.decode(f"[{opening}{piece}}}]")
        events += several
        numbers += [number] * len(several)
    framed, _ = events_of(events)
    place = pl.Series("number", numbers, rest.schema["number"])
    return Events(framed.forms, framed.rows.with_columns(place))


def _in_order(found: list[Events]) -> Events:
    """All events by their numbers, with their forms in the order in which they are met."""
    first = 0
    rows: list[pl.DataFrame] = []
    for events in found:
        rows.append(events.rows.select("number", pl.col("form") + first, *_REST))
        first += len(events.forms)
    ordered = pl.concat(rows)
    if sum(len(events) > 0 for events in found) > 1:
        ordered = ordered.sort("number", maintain_order=True)
    met = ordered["form"].unique(maintain_order=True)
    places = pl.zeros(first, pl.UInt32, eager=True).scatter(met, pl.arange(len(met), eager=True))
    forms = pl.concat([events.forms for events in found])[met]
    return Events(forms, ordered.select(places.gather(ordered["form"]).alias("form"), *_REST))


_REST = ("ts_ns", "dur_ns", "has_ts", "has_dur", "id", "id2", "args")
