"""Arguments of many plain events at once, as JSON text."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from struct import Struct

import numpy as np
import polars as pl

from stepscope.ingest.readers.encodings.protobuf_columns import Content, Numbers, Places
from stepscope.ingest.readers.perfetto.packets.arguments import NULL, SCALARS, interned, key_of
from stepscope.ingest.readers.perfetto.packets.plain import (
    VALUES,
    Annotations,
    Columns,
    Flags,
    numbered,
    texts,
)
from stepscope.ingest.readers.perfetto.packets.sequence import KEYS, Sequence
from stepscope.ingest.readers.perfetto.packets.texts import text
from stepscope.ingest.readers.perfetto.packets.track_event import STEP
from stepscope.ingest.writers.perfetto_packets import OURS

Sequences = Callable[[int], Sequence]
_LIMIT_STEP = 10**18
_DOUBLE, _BITS = Struct("<d"), Struct("<Q")
_WHOLE = {"int_value": np.int64, "uint_value": np.uint64}
_ESCAPED = r'["\\\x00-\x1f]'
_INT = VALUES.index("int_value")


@dataclass(frozen=True, slots=True)
class Arguments:
    """What arguments say.

    event   events that have any, in order, and `args` those of each
    step_event  events that say a step, and `step` which
    unread  events whose arguments are not read: of one name several times, or ours
    """

    event: Places
    args: pl.Series
    step_event: Places
    step: pl.Series
    unread: Places


def read_arguments(
    found: Annotations, content: Content, sequence: Numbers, sequence_of: Sequences
) -> Arguments:
    """Read arguments; `sequence` has the number of that of each event."""
    of = sequence[found.event]
    names, key = _names(found, content, of, sequence_of)
    is_ours = np.array([name.startswith(OURS) for name in names], np.bool_)[key]
    is_step = np.array([name == STEP for name in names], np.bool_)[key] & _is_step(found)
    unread = np.unique(found.event[_is_repeated(found.event, key) | (is_ours & ~is_step)])
    is_read = ~np.isin(found.event, unread)
    steps = is_step & is_read
    shown = is_read & ~is_ours
    keys = pl.Series(map(key_of, names), dtype=pl.String).gather(key)
    args = (keys + _values(found, content, of, sequence_of)).filter(pl.Series(shown))
    return Arguments(
        *_by_event(found.event[shown], args),
        found.event[steps],
        pl.Series("step", found.value[steps].view(np.int64)),
        unread,
    )


def _names(
    found: Annotations, content: Content, of: Numbers, sequence_of: Sequences
) -> tuple[list[str], Columns]:
    """All names, and which of them each annotation has."""

    def name(number: int, iid: int, written: bytes | None = None) -> str:
        known = sequence_of(number).interned[KEYS]
        return text(written or "") if written is not None or not iid else known.get(iid, f"#{iid}")

    said: dict[str, Numbers | pl.Series] = {"of": of, "iid": np.where(found.is_iid, found.name, 0)}
    if not found.is_iid.all():
        said["written"] = _written(content, found.name, ~found.is_iid)
    first, number = numbered(columns := pl.DataFrame(said))
    shown = [name(*row) for row in columns[first].rows()]
    places: dict[str, int] = {}
    place = [places.setdefault(each, len(places)) for each in shown]
    return [*places], np.array(place, np.int64)[number]


def _written(content: Content, places: Numbers, is_text: Flags) -> pl.Series:
    """The texts at places that are of one, else null."""
    at = np.flatnonzero(is_text)
    found = pl.repeat(None, len(places), dtype=pl.Binary, eager=True)
    return found.scatter(at, texts(content, places[at]))


def _values(found: Annotations, content: Content, of: Numbers, sequence_of: Sequences) -> pl.Series:
    """The value of each annotation as JSON text."""
    values = pl.repeat(NULL, len(of), dtype=pl.String, eager=True)
    for kind in np.unique(found.kind[found.kind >= 0]):
        at = np.flatnonzero(found.kind == kind)
        shown = _texts_of(VALUES[kind], found.value[at], content, of[at], sequence_of)
        values = values.scatter(at, shown)
    return values


def _texts_of(
    kind: str, value: Numbers, content: Content, of: Numbers, sequence_of: Sequences
) -> pl.Series:
    if kind in _WHOLE:
        return pl.Series(value.view(_WHOLE[kind])).cast(pl.String)
    if kind == "string_value":
        return _quoted(texts(content, value))
    if kind == "string_value_iid":
        return _each(lambda number, iid: interned(sequence_of(number), iid), of=of, value=value)
    convert = SCALARS[kind]
    said: object = value
    if kind == "double_value":
        # As bits: a number that is none is like no other.
        return _each(lambda bits: convert(*_DOUBLE.unpack(_BITS.pack(bits))), value=value)
    if kind == "legacy_json_value":
        said = texts(content, value)
    elif kind == "bool_value":
        said = value != 0
    return _each(convert, value=said)


def _quoted(strings: pl.Series) -> pl.Series:
    """Strings as JSON; few have anything that is written another way there."""
    shown = pl.repeat(None, len(strings), dtype=pl.String, eager=True)
    with suppress(pl.exceptions.PolarsError):  # not all of it is UTF-8
        plain = strings.cast(pl.String)
        shown = pl.select(
            pl.when(~plain.str.contains(_ESCAPED)).then('"' + plain + '"')
        ).to_series()
    others = shown.is_null().arg_true()
    return shown.scatter(others, _each(SCALARS["string_value"], value=strings.gather(others)))


def _each(text_of_row: Callable[..., str], **columns: object) -> pl.Series:
    """A text for each row, made once of rows that are the same."""
    rows = pl.DataFrame(columns)
    first, number = numbered(rows)
    shown = pl.Series([text_of_row(*row) for row in rows[first].rows()], dtype=pl.String)
    return shown.gather(number)


def _is_step(found: Annotations) -> Flags:
    value = found.value.view(np.int64)
    is_whole: Flags = (found.kind == _INT) & (value > -_LIMIT_STEP) & (value < _LIMIT_STEP)
    return is_whole


def _is_repeated(event: Places, key: Columns) -> Flags:
    """Whether an event has a name several times."""
    each = event << 32 | key
    ordered = np.sort(each)
    return np.isin(each, ordered[1:][ordered[1:] == ordered[:-1]])


def _by_event(event: Places, args: pl.Series) -> tuple[Places, pl.Series]:
    """Events, in order, and the arguments of each as one object."""
    is_first = np.diff(event, prepend=-1) != 0
    row = np.cumsum(is_first) - 1
    starts = np.flatnonzero(is_first)
    place = np.arange(len(event)) - starts[row] if len(event) else row
    columns = []
    for each in range(int(place.max(initial=0)) + 1):
        at = np.flatnonzero(place == each)
        none = pl.repeat(None, len(starts), dtype=pl.String, eager=True)
        columns.append(none.scatter(row[at], args.gather(at)).alias(str(each)))
    joined = pl.concat_str(pl.all(), separator=", ", ignore_nulls=True)
    inside = pl.DataFrame(columns).select(joined).to_series()
    return event[starts], ("{" + inside + "}").alias("args")
