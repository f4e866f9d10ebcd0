"""Packets of a Perfetto file, written one at a time."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from functools import lru_cache
from typing import IO, Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket

from stepscope.ingest.writers.perfetto_arguments import debug_annotations

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4  # TrackEvent.type
OURS = "stepscope."
"""What the names of annotations begin with that are ours, and no arguments of the trace."""
Fields = Mapping[str, Any]
_SEQUENCE = 1
_STATE_CLEARED, _NEEDS_STATE = 1, 2  # TracePacket.sequence_flags
_PACKET = b"\x0a"  # field 1 of Trace
_TIMESTAMP = b"\x40"  # field 8 of TracePacket
_NUM_KEPT = 1 << 14
_NOTHING: Fields = {}


class Packets:
    """Writes packets of one sequence to a file; names are written once and numbered.

    Events that differ only in time have the same bytes behind their timestamp: those of what has
    no arguments are made once.
    """

    def __init__(self, file: IO[bytes] | gzip.GzipFile) -> None:
        self._write = file.write
        self._iids: dict[str, dict[str, int]] = {
            kind: {} for kind in ("event_names", "event_categories", "debug_annotation_names")
        }
        self._plain = lru_cache(_NUM_KEPT)(self._event)
        self._ends = lru_cache(_NUM_KEPT)(_end)

    def first(self, **fields: Any) -> None:
        """Write the packet with which the sequence begins."""
        self._packet(TracePacket(sequence_flags=_STATE_CLEARED, **fields))

    def packet(self, **fields: Any) -> None:
        """Write a packet that has no time."""
        self._packet(TracePacket(**fields))

    def begin(
        self,
        ts_ns: int,
        event: tuple[int, int, str, str | None],
        args: str | None,
        ours: Fields,
        fields: Fields,
    ) -> None:
        """Write the begin of a slice, or an instant: its track, kind, name and category.

        `args` is JSON text; `ours` are annotations of our own, by what follows `OURS` in their
        name; `fields` are further ones of TrackEvent.
        """
        if args is None and not ours and not fields:
            self._timed(ts_ns, self._plain(*event))
        else:
            self._timed(ts_ns, self._event(*event, args, ours, fields))

    def end(self, ts_ns: int, track: int) -> None:
        """Write the end of the innermost slice of a track."""
        self._timed(ts_ns, self._ends(track))

    def sample(self, ts_ns: int, track: int, value: float) -> None:
        """Write a value of a counter."""
        event = {"type": COUNTER, "track_uuid": track, "double_counter_value": value}
        self._timed(ts_ns, _packed(_in_sequence(event)))

    def _event(
        self,
        track: int,
        kind: int,
        name: str,
        category: str | None,
        args: str | None = None,
        ours: Fields = _NOTHING,
        fields: Fields = _NOTHING,
    ) -> bytes:
        name_iid = self._iid("event_names", name)
        packet = _in_sequence({"type": kind, "track_uuid": track, "name_iid": name_iid, **fields})
        event = packet.track_event
        if category is not None:
            event.category_iids.append(self._iid("event_categories", category))
        for key, value in debug_annotations(args) if args is not None else ():
            event.debug_annotations.add(name_iid=self._iid("debug_annotation_names", key), **value)
        for key, value in ours.items():
            name_iid = self._iid("debug_annotation_names", OURS + key)
            event.debug_annotations.add(name_iid=name_iid, **value)
        return _packed(packet)

    def _iid(self, kind: str, text: str) -> int:
        """The number of a text, which is written now if it is new."""
        iids = self._iids[kind]
        iid = iids.get(text)
        if iid is None:
            iid = iids[text] = len(iids) + 1
            entries = {kind: [{"iid": iid, "name": text}]}
            self._packet(TracePacket(sequence_flags=_NEEDS_STATE, interned_data=entries))
        return iid

    def _packet(self, packet: TracePacket) -> None:
        packet.trusted_packet_sequence_id = _SEQUENCE
        body = _packed(packet)
        self._write(_PACKET + _varint(len(body)) + body)

    def _timed(self, ts_ns: int, event: bytes) -> None:
        stamp = _TIMESTAMP + _varint(ts_ns)
        self._write(_PACKET + _varint(len(stamp) + len(event)) + stamp + event)


def _end(track: int) -> bytes:
    return _packed(_in_sequence({"type": END, "track_uuid": track}))


def _in_sequence(event: Fields) -> TracePacket:
    return TracePacket(
        trusted_packet_sequence_id=_SEQUENCE, sequence_flags=_NEEDS_STATE, track_event=event
    )


def _packed(packet: TracePacket) -> bytes:
    whole: bytes = packet.SerializeToString()
    return whole


_CONTINUED = [bytes((number & 127 | 128, number >> 7 | 128)) for number in range(1 << 14)]


def _varint(number: int) -> bytes:
    """A number as protobuf writes it: seven bits a byte, the lowest first."""
    groups = b""
    while number >> 14:
        groups += _CONTINUED[number & 0x3FFF]
        number >>= 14
    last = (number & 127 | 128, number >> 7) if number >> 7 else (number,)
    return groups + bytes(last)
