"""What packets say, in columns: as far as they are plain, as most events of a large file are.

A plain packet holds nothing but a time and a track event; a plain event nothing but its type,
name, category, track, correlation, and arguments that are numbers and texts, or the value of a
counter. Whatever else a packet says is for others to read, packet by packet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
from google.protobuf.descriptor import FieldDescriptor
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages

from stepscope.ingest.readers.encodings.protobuf_columns import (
    BYTES,
    FIXED64,
    VARINT,
    Content,
    Fields,
    Numbers,
    Places,
    field_tag,
)
from stepscope.ingest.readers.perfetto.split import Packets

Flags = npt.NDArray[np.bool_]
Columns = npt.NDArray[np.int64]
SAMPLE = 4  # TrackEvent.Type
_TYPES = (1, 2, 3, SAMPLE)
_STATE_CLEARED = 1  # TracePacket.sequence_flags
_MOST_FIELDS = 64
_UINT32 = np.uint64(0xFFFFFFFF)
_WIRE = {FieldDescriptor.TYPE_DOUBLE: FIXED64, FieldDescriptor.TYPE_STRING: BYTES,
         FieldDescriptor.TYPE_MESSAGE: BYTES, FieldDescriptor.TYPE_BYTES: BYTES}  # fmt: skip
_PLACE_BITS = np.uint64(32)
"""The place of a text or message is where it begins, so many bits higher, and its length."""


class _Kind:
    """A kind of message, and its fields that are read, each into a column of its own."""

    def __init__(self, message: str, *names: str, many: str = "") -> None:
        fields = getattr(messages, message).DESCRIPTOR.fields_by_name
        tags = [field_tag(fields[n].number, _WIRE.get(fields[n].type, VARINT)) for n in names]
        self.names = names
        self.many = names.index(many) if many else -1
        self._column = np.full(max(tags) + 2, -1)
        self._column[tags] = np.arange(len(tags))

    def columns(self, found: Fields) -> Columns:
        """The column of each field, -1 for one that is not read."""
        return self._column[np.minimum(found.tag, len(self._column) - 1)]

    def bits(self, *names: str) -> int:
        """A number with a bit for each of these columns."""
        return sum(1 << self.names.index(name) for name in names)


_BORDERS = (
    "clock_snapshot", "trace_packet_defaults", "thread_descriptor", "incremental_state_cleared",
    "compressed_packets", "zstd_compressed_packets",
)  # fmt: skip
_PACKET = _Kind(
    "TracePacket", "timestamp", "track_event", "trusted_packet_sequence_id", "sequence_flags",
    "timestamp_clock_id", "trusted_uid", "trusted_pid", "machine_id", *_BORDERS,
)  # fmt: skip
_TEXTS = ("name", "categories")
_TEMPLATE = ("type", "name_iid", "category_iids", "track_uuid", *_TEXTS)
_NUMBERS = ("counter_value", "double_counter_value")
_EVENT = _Kind(
    "TrackEvent", *_TEMPLATE, *_NUMBERS, "correlation_id", "debug_annotations",
    many="debug_annotations",
)  # fmt: skip
VALUES = (
    "int_value", "uint_value", "bool_value", "double_value", "pointer_value", "string_value",
    "legacy_json_value", "string_value_iid",
)  # fmt: skip
_ANNOTATION = _Kind("DebugAnnotation", *VALUES, "name_iid", "name")


@dataclass(slots=True)
class _Messages:
    """What messages say: values by column and message, and which columns each message has.

    `says_more` of a message that says something else, or something twice; `is_broken` of one of
    which nothing is sure. `many` are the messages, and the places, of what may repeat.
    """

    kind: _Kind
    values: Numbers
    bits: Numbers
    says_more: Flags
    is_broken: Flags
    many: list[tuple[Places, Numbers]]

    def __getitem__(self, name: str) -> Numbers:
        found: Numbers = self.values[self.kind.names.index(name)]
        return found

    def has(self, *names: str) -> Flags:
        """Which messages have any of these columns."""
        has: Flags = (self.bits & np.uint64(self.kind.bits(*names))) != 0
        return has


@dataclass(frozen=True, slots=True)
class Annotations:
    """Arguments of plain events, in order; arrays of one length.

    event   which packet it is of
    kind    which of `VALUES` it has, -1 for none
    value   its value, or the place of its text
    name    the number of its name, or the place
    is_iid  whether it is a number
    """

    event: Places
    kind: Columns
    value: Numbers
    name: Numbers
    is_iid: Flags

    def of(self, events: Flags) -> Annotations:
        """Those of some of the packets."""
        which = events[self.event]
        return Annotations(self.event[which], self.kind[which], self.value[which],
                           self.name[which], self.is_iid[which])  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plain:
    """Packets in columns, a row for each.

    is_event    whether it holds an event and a time, and sequence, clock and stamp say which
    is_plain    whether it is plain, and all further columns say what there is to say
    is_border   whether what is behind it may be on another clock or track
    template    of one number where packets differ in nothing but times, arguments and correlation
    kind        TrackEvent.Type
    value       of a counter
    """

    is_event: Flags
    is_plain: Flags
    is_border: Flags
    sequence: Numbers
    clock: Numbers
    stamp: Numbers
    template: Columns
    kind: Numbers
    value: npt.NDArray[np.float64]
    correlation: Numbers
    annotations: Annotations
    content: Content


def plain(packets: Packets) -> Plain:
    """What packets say."""
    content = packets.content
    messages = _read(content, packets.begin, packets.end, _PACKET)
    is_event = ~messages.is_broken & messages.has("timestamp") & messages.has("track_event")
    is_cleared = (messages["sequence_flags"] & np.uint64(_STATE_CLEARED)) != 0
    is_border = messages.is_broken | messages.has(*_BORDERS) | is_cleared
    is_plain = is_event & ~is_border & ~messages.says_more
    sequence = messages["trusted_packet_sequence_id"] & _UINT32
    events = _read(content, *_extent(np.where(is_plain, messages["track_event"], 0)), _EVENT)
    annotations, not_read = _annotations(content, events.many)
    is_plain &= _is_plain(events)
    is_plain[not_read] = False
    return Plain(
        is_event,
        is_plain,
        is_border,
        sequence,
        messages["timestamp_clock_id"] & _UINT32,
        messages["timestamp"],
        _templates(content, events, sequence),
        events["type"],
        _sampled(events),
        events["correlation_id"],
        annotations.of(is_plain),
        content,
    )


def _is_plain(events: _Messages) -> Flags:
    """Which events say what they are and nothing else; samples of counters have a value."""
    is_known = ~events.is_broken & ~events.says_more & np.isin(events["type"], _TYPES)
    is_sample = events["type"] == SAMPLE
    found: Flags = is_known & (events.has(*_NUMBERS) == is_sample)
    return found


def _sampled(events: _Messages) -> npt.NDArray[np.float64]:
    whole = events["counter_value"].view(np.int64)
    double = events["double_counter_value"].view(np.float64)
    return np.where(events.has("double_counter_value"), double, whole)


def texts(content: Content, places: Numbers) -> pl.Series:
    """The bytes of texts."""
    begin, end = _extent(places)
    whole = pl.lit(pl.Series([content.bytes]))  # of a plain literal Polars makes much ado
    return pl.select(whole.bin.slice(pl.Series(begin), pl.Series(end - begin))).to_series()


def numbered(columns: pl.DataFrame) -> tuple[Places, Columns]:
    """The first of each of the rows that are different, and for each row which of them it is."""
    names = [each.name for each in columns if _varies(each)] or columns.columns[:1]
    rows = columns.select(names).with_row_index("row")
    known = rows.unique(names, keep="first", maintain_order=True).with_row_index("number")
    found = rows.join(known, on=names, how="left", nulls_equal=True, maintain_order="left")
    return known["row"].cast(pl.Int64).to_numpy(), found["number"].cast(pl.Int64).to_numpy()


def _varies(column: pl.Series) -> bool:
    return not column.dtype.is_integer() or bool(column.min() != column.max())


def _read(content: Content, begin: Places, end: Places, kind: _Kind) -> _Messages:
    num = len(begin)
    messages = _Messages(
        kind,
        np.zeros((len(kind.names), num), np.uint64),
        np.zeros(num, np.uint64),
        np.zeros(num, np.bool_),
        np.zeros(num, np.bool_),
        [],
    )
    for found in content.fields(begin, end, _MOST_FIELDS):
        if isinstance(found, Fields):
            _take(messages, found)
        else:
            messages.is_broken[found] = True
    return messages


def _take(messages: _Messages, found: Fields) -> None:
    columns = messages.kind.columns(found)
    value = np.where(found.tag & 7 == BYTES, _place(found), found.number)
    messages.says_more[found.rows[columns < 0]] = True
    for column in np.flatnonzero(np.bincount(columns + 1)[1:]):
        is_its = columns == column
        rows, its = found.rows[is_its], value[is_its]
        if column == messages.kind.many:
            messages.many.append((rows, its))
            continue
        bit = np.uint64(1 << int(column))
        messages.says_more[rows] |= messages.bits[rows] & bit != 0
        messages.bits[rows] |= bit
        messages.values[column][rows] = its


def _place(found: Fields) -> Numbers:
    length = found.end - found.begin
    return found.begin.astype(np.uint64) << _PLACE_BITS | length.astype(np.uint64)


def _extent(places: Numbers) -> tuple[Places, Places]:
    """Where texts or messages begin and end."""
    begin = (places >> _PLACE_BITS).astype(np.int64)
    return begin, begin + (places & _UINT32).astype(np.int64)


def _annotations(
    content: Content, many: list[tuple[Places, Numbers]]
) -> tuple[Annotations, Places]:
    """Annotations by event, and the events that have others than plain ones."""
    events = np.concatenate([np.empty(0, np.int64), *(rows for rows, _ in many)])
    order = np.argsort(events, kind="stable")
    event = events[order]
    places = np.concatenate([np.empty(0, np.uint64), *(places for _, places in many)])[order]
    found = _read(content, *_extent(places), _ANNOTATION)
    value_bits = found.bits & np.uint64(found.kind.bits(*VALUES))
    has_several = value_bits & (value_bits - np.uint64(1)) & value_bits != 0
    kind = np.bitwise_count(value_bits - np.uint64(1)).astype(np.int64)
    kind[value_bits == 0] = -1
    value = found.values[np.maximum(kind, 0), np.arange(len(event))]
    is_iid = found.has("name_iid")
    is_other = found.is_broken | found.says_more | has_several | (is_iid == found.has("name"))
    name = np.where(is_iid, found["name_iid"], found["name"])
    return Annotations(event, kind, value, name, is_iid), event[is_other]


def _templates(content: Content, events: _Messages, sequence: Numbers) -> Columns:
    columns = {name: events[name] for name in _TEMPLATE if name not in _TEXTS}
    key = {"sequence": sequence, "bits": events.bits & np.uint64(events.kind.bits(*_TEMPLATE))}
    written = {name: texts(content, events[name]) for name in _TEXTS if events.has(name).any()}
    return numbered(pl.DataFrame({**key, **columns, **written}))[1]
