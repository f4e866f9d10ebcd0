"""What events and their arguments say, in columns; and names out of small messages.

XEvent {metadata_id = 1, offset_ps = 2, duration_ps = 3, stats = 4, num_occurrences = 5}
XStat {metadata_id = 1, double = 2, uint64 = 3, int64 = 4, str = 5, bytes = 6, ref = 7}
XEventMetadata {id = 1, name = 2, metadata = 3, display_name = 4}, XStatMetadata {id = 1, name = 2}
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.ingest.readers.encodings.protobuf_columns import (
    BYTES,
    FIXED64,
    VARINT,
    Content,
    Fields,
    Places,
    field_tag,
)
from stepscope.ingest.readers.encodings.protobuf_fields import field_at, varint
from stepscope.ingest.readers.xplane.split import Events

_FAR = 1 << 61
MOST_FIELDS = 256
"""Of an event: more of them are no event."""
_NAME, _OFFSET, _DURATION = (field_tag(number, VARINT) for number in (1, 2, 3))
_STAT, _OCCURRENCES = field_tag(4, BYTES), field_tag(5, VARINT)
_KEY, _DOUBLE, _TEXT = field_tag(1, VARINT), field_tag(2, FIXED64), field_tag(5, BYTES)
_UNSIGNED, _SIGNED, _REF = (field_tag(number, VARINT) for number in (3, 4, 7))
_KINDS = {_DOUBLE: "double", _UNSIGNED: "unsigned", _SIGNED: "signed", _TEXT: "text", _REF: "ref"}
KIND = pl.Enum(list(_KINDS.values()))
STAT_COLUMNS = {
    "event": pl.Int64(), "key": pl.Int64(), "kind": KIND, "number": pl.UInt64(),
    "text": pl.String(),
}  # fmt: skip
EVENT_COLUMNS = dict.fromkeys(("name", "offset_ps", "dur_ps"), pl.Int64())
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Decoded:
    """Events in columns, their arguments (`event` is the row), and how many were left out."""

    events: pl.DataFrame
    stats: pl.DataFrame
    num_malformed: int
    num_counted: int
    """Events that only say how often something happened, and not when."""


def decoded(found: Events) -> Decoded:
    """Read all events at once."""
    num = len(found.begin)
    columns = {tag: np.zeros(num, np.int64) for tag in (_NAME, _OFFSET, _DURATION)}
    is_malformed, is_counted = np.zeros(num, np.bool_), np.zeros(num, np.bool_)
    stats: list[tuple[Places, Places, Places]] = []
    for fields in found.content.fields(found.begin, found.end, MOST_FIELDS):
        if not isinstance(fields, Fields):
            is_malformed[fields] = True
            continue
        for tag, column in columns.items():
            own = fields.tag == tag
            column[fields.rows[own]] = fields.number[own].view(np.int64)
        is_counted[fields.rows[fields.tag == _OCCURRENCES]] = True
        own = fields.tag == _STAT
        if own.any():
            stats.append((fields.rows[own], fields.begin[own], fields.end[own]))
    is_far = (columns[_OFFSET] > _FAR) | (columns[_OFFSET] < -_FAR)
    is_malformed |= (columns[_DURATION] < 0) | (columns[_DURATION] > _FAR) | is_far
    kept = ~(is_malformed | is_counted)
    row = np.where(kept, np.cumsum(kept) - 1, -1)
    named = zip(EVENT_COLUMNS, columns.values(), strict=True)
    events = pl.DataFrame({name: column[kept] for name, column in named}, schema=EVENT_COLUMNS)
    told = _stats(found.content, stats, row)
    return Decoded(events, told, int(is_malformed.sum()), int((is_counted & ~is_malformed).sum()))


def _stats(
    content: Content, found: list[tuple[Places, Places, Places]], row: Places
) -> pl.DataFrame:
    if not found:
        return pl.DataFrame(schema=STAT_COLUMNS)
    owner, begin, end = (np.concatenate(each) for each in zip(*found, strict=True))
    num = len(owner)
    key, number = np.zeros(num, np.int64), np.zeros(num, np.uint64)
    kind = np.full(num, -1)
    first, last = np.zeros(num, np.int64), np.zeros(num, np.int64)
    for fields in content.fields(begin, end, len(_KINDS)):
        if not isinstance(fields, Fields):
            continue
        own = fields.tag == _KEY
        key[fields.rows[own]] = fields.number[own].view(np.int64)
        for place, tag in enumerate(_KINDS):
            own = fields.tag == tag
            rows = fields.rows[own]
            kind[rows], number[rows] = place, fields.number[own]
            first[rows], last[rows] = fields.begin[own], fields.end[own]
    kept = (kind >= 0) & (row[owner] >= 0)
    is_text = list(_KINDS).index(_TEXT) == kind[kept]
    texts: list[str | None] = [None] * int(kept.sum())
    for place in np.flatnonzero(is_text).tolist():
        cut = content.bytes[first[kept][place] : last[kept][place]]
        texts[place] = cut.decode("utf-8", "replace")
    return pl.DataFrame(
        {
            "event": row[owner[kept]], "key": key[kept],
            "kind": pl.Series([*_KINDS.values()], dtype=KIND).gather(kind[kept]),
            "number": number[kept], "text": texts,
        },
        schema=STAT_COLUMNS,
    ).sort("event", maintain_order=True)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Named:
    """A number and its name, of an event's or an argument's kind."""

    number: int
    name: str


def entry(message: bytes) -> Named | None:
    """An entry of a map from numbers to what they mean; None where it has no name."""
    outer = first_fields(message)
    value = outer.get(2)
    if not isinstance(value, bytes):
        return None
    said = first_fields(value)
    number = outer.get(1, said.get(1, 0))
    shown = said.get(4) or said.get(2)
    if not isinstance(number, int) or not isinstance(shown, bytes):
        return None
    return Named(_signed(number), shown.decode("utf-8", "replace"))


def first_fields(message: bytes) -> dict[int, int | bytes]:
    """Fields of a small message by number, the last of each; as far as they can be read."""
    found: dict[int, int | bytes] = {}
    at = 0
    for _ in range(MOST_FIELDS):
        tag, field = varint(message, at), field_at(message, at)
        if tag is None or field is None or field[1] > len(message):
            break
        kind, number = tag[0] & 7, varint(message, field[0])
        if kind == BYTES:
            found[tag[0] >> 3] = message[slice(*field)]
        elif kind == VARINT and number:
            found[tag[0] >> 3] = number[0]
        at = field[1]
    return found


def _signed(number: int) -> int:
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number
