"""Events of a Perfetto file in columns, as its packets say them one after the other."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

import polars as pl
from google.protobuf.message import DecodeError
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket

from stepscope.ingest.limits import Limits, raised_by
from stepscope.ingest.readers.perfetto_clocks import Clock
from stepscope.ingest.readers.perfetto_compressed import KINDS, Compressed
from stepscope.ingest.readers.perfetto_rows import Rows
from stepscope.ingest.readers.perfetto_sequence import Sequence
from stepscope.ingest.readers.perfetto_state import STATE_CLEARED, State
from stepscope.ingest.readers.perfetto_track_event import (
    EXTRA,
    EXTRA_DOUBLE,
    TIMES,
    TRACK,
    VALUES,
    Arrow,
    EventParser,
    Said,
    Unread,
    role_of,
)
from stepscope.ingest.readers.perfetto_tracks import Key

LIMIT_NS = 1 << 62
_NUM_KNOWN = 1 << 16
_TIMESTAMP = b"\x40"  # field 8 of TracePacket
_LONGEST_STAMP = 11
_FIELDS = TracePacket.DESCRIPTOR.fields_by_name
_EVENT, _STAMP = _FIELDS["track_event"], _FIELDS["timestamp"]
_CLOCK = _FIELDS["timestamp_clock_id"]
_PLAIN = frozenset(
    (_EVENT, _STAMP, _CLOCK, _FIELDS["sequence_flags"], _FIELDS["trusted_packet_sequence_id"],
     _FIELDS["trusted_uid"], _FIELDS["trusted_pid"], _FIELDS["machine_id"])
)  # fmt: skip
_OTHER_THAN_SLICES = frozenset((*VALUES, *EXTRA, *EXTRA_DOUBLE, *TIMES))
_I64 = pl.Int64
EVENT = {
    "role": pl.String, "track": _I64, "name": pl.String, "category": pl.String, "args": pl.String,
    "id": pl.String, "dur_ns": _I64, "correlation": _I64, "told_step": _I64, "told_form": pl.String,
}  # fmt: skip
ARROW = {
    "event": _I64, "ts_ns": _I64, "track": _I64, "arrow": pl.String, "end": pl.String,
    "flow": pl.String, "name": pl.String, "category": pl.String,
}  # fmt: skip
SAMPLE = {"ts_ns": _I64, "track": _I64, "value": pl.Float64}


class Events:
    """Takes packets and gives columns; counts what it skips.

    Packets that differ only in their timestamp say the same: such an event is read once.
    """

    def __init__(self, limits: Limits) -> None:
        self.state = State(limits)
        self.arrows = Rows(ARROW)
        self.samples = Rows(SAMPLE)
        self.compressed = Compressed(limits)
        self.beyond: str | None = None
        self._limits = limits
        self._parser = EventParser(limits.text, limits.depth)
        self._times = array("q")
        self._shapes = array("I")
        self._shape_rows = Rows(EVENT)
        self._known: dict[bytes, tuple[int, Clock | None]] = {}
        self._sums: dict[Key | None, float] = {}

    def add(self, packets: Iterable[bytes]) -> None:
        """Read packets, up to the limit of events."""
        known, times, shapes = self._known, self._times, self._shapes
        for packet in packets:
            if packet[:1] == _TIMESTAMP and len(packet) > _LONGEST_STAMP:
                byte = packet[1]
                stamp, at, shift = byte & 127, 2, 7
                while byte > 127 and at < _LONGEST_STAMP:
                    byte = packet[at]
                    stamp |= (byte & 127) << shift
                    at, shift = at + 1, shift + 7
                found = known.get(packet[at:])
                if found is not None and found[1] is None and stamp < LIMIT_NS:
                    times.append(stamp)
                    shapes.append(found[0])
                elif found is not None:
                    self._known_event(stamp, *found)
                else:
                    self._read(packet, packet[at:])
            else:
                self._read(packet, b"")
        if len(times) + len(self.samples) > self._limits.events:
            self.beyond = f"more than {self._limits.events:,} events ({raised_by('events')})"

    def frame(self) -> pl.DataFrame:
        """All events but samples, in the order of the file: `event`, `ts_ns` and those of EVENT."""
        shapes = self._shape_rows.frame()[pl.Series(self._shapes, dtype=pl.UInt32)]
        number = pl.int_range(pl.len(), dtype=_I64).alias("event")
        return shapes.with_columns(number, pl.Series("ts_ns", self._times, _I64))

    def repaired(self) -> dict[str, int]:
        """What was kept in part, counted."""
        parser, limits = self._parser, self._limits
        found = {
            f"text of more than {limits.text:,} bytes ({raised_by('text')})": parser.num_long,
            f"args deeper than {limits.depth:,} left out ({raised_by('depth')})": parser.num_deep,
            "names that the file lacks": parser.num_unnamed,
            f"events on tracks beyond {limits.tracks:,}, shown as one ({raised_by('tracks')})":
                self.state.tracks.num_beyond,
        }  # fmt: skip
        return {what: num for what, num in found.items() if num}

    def _known_event(self, stamp: int, shape: int, clock: Clock | None) -> None:
        """An event like one before, on a clock of its own or at an absurd time."""
        try:
            self._timed(stamp if clock is None else clock.time_ns(stamp), shape)
        except Unread as reason:
            self.state.skipped[str(reason)] += 1

    def _timed(self, ts_ns: int, shape: int) -> None:
        self._times.append(_sane(ts_ns))
        self._shapes.append(shape)

    def _read(self, packet: bytes, untimed: bytes) -> None:
        """Read a packet; `untimed` is what follows its timestamp, when that comes first."""
        try:
            said = TracePacket.FromString(packet)
        except DecodeError:
            self.state.skipped["packets that cannot be decoded"] += 1
            return
        fields = dict(said.ListFields())
        sequence = self.state.sequence(said.trusted_packet_sequence_id)
        says_more = not _PLAIN.issuperset(fields) or bool(said.sequence_flags & STATE_CLEARED)
        if says_more and self.state.changed_by(said, sequence):
            self._known.clear()
        if _EVENT in fields:
            self._read_event(fields, sequence, b"" if says_more else untimed)
        elif kind := said.WhichOneof("data"):
            self._read_other(kind, said, sequence)
        else:
            self.state.read["state of a sequence"] += 1

    def _read_other(self, kind: str, said: Any, sequence: Sequence) -> None:
        if kind in KINDS and not self.compressed.is_open:
            self.state.read[kind.replace("_", " ")] += 1
            for packets in self.compressed.packets(kind, getattr(said, kind)):
                self.add(packets)
            return
        self.state.take(kind, said, sequence)
        if kind == "clock_snapshot":
            self._known.clear()

    def _read_event(self, fields: Said, sequence: Sequence, untimed: bytes) -> None:
        said = dict(fields[_EVENT].ListFields())
        try:
            role = role_of(said)
            clock = self.state.clock(fields.get(_CLOCK, 0), sequence)
            stamp = fields.get(_STAMP)
            ts_ns = _sane(_event_ns(said, sequence) if stamp is None else _ns(stamp, clock))
        except Unread as reason:
            self.state.skipped[str(reason)] += 1
            return
        key = said.get(TRACK, sequence.default_track()) or None
        if not _OTHER_THAN_SLICES.isdisjoint(said):
            untimed = b""
            self._add_samples(said, role, ts_ns, key, sequence)
        if role == "counter":
            return
        parsed, arrows = self._parser.parse(said, role, self.state.tracks.number(key), sequence)
        if arrows:
            untimed = b""
            self._add_arrows(arrows, ts_ns, parsed.track)
        shape = len(self._shape_rows)
        self._shape_rows.add(parsed)
        self._timed(ts_ns, shape)
        if untimed:
            if len(self._known) >= _NUM_KNOWN:
                self._known.clear()
            self._known[untimed] = shape, clock

    def _add_arrows(self, arrows: Iterable[Arrow], ts_ns: int, track: int) -> None:
        number = len(self._times)
        for each in arrows:
            at_ns = ts_ns + each.offset_ns
            told = (str(each.arrow), each.end, each.flow, each.name, each.category)
            self.arrows.add((number, at_ns, track, *told))

    def _add_samples(
        self, said: Said, role: str, ts_ns: int, key: Key | None, sequence: Sequence
    ) -> None:
        if role == "counter":
            self.state.read[role] += 1
            self._add_sample(ts_ns, key, next((said[each] for each in VALUES if each in said), 0))
        for (uuids, values), known in (
            (EXTRA, sequence.counters),
            (EXTRA_DOUBLE, sequence.double_counters),
        ):
            for uuid, value in zip(said.get(uuids, known), said.get(values, ()), strict=False):
                self._add_sample(ts_ns, uuid, value)

    def _add_sample(self, ts_ns: int, key: Key | None, value: float) -> None:
        counter = self.state.tracks.counter(key)
        value *= counter.factor
        if counter.is_incremental:
            value = self._sums[key] = self._sums.get(key, 0.0) + value
        self.samples.add((ts_ns, self.state.tracks.number(key), float(value)))


def _ns(stamp: int, clock: Clock | None) -> int:
    return stamp if clock is None else clock.time_ns(stamp)


def _event_ns(said: Said, sequence: Sequence) -> int:
    """When an event of an older file happened, whose packet has no time; raises `Unread`."""
    delta, absolute = TIMES
    if absolute in said:
        return int(said[absolute]) * 1000
    if delta not in said:
        raise Unread("no timestamp")
    sequence.last_us += said[delta]
    return sequence.last_us * 1000


def _sane(ts_ns: int) -> int:
    if not -LIMIT_NS < ts_ns < LIMIT_NS:
        raise Unread("time beyond this era")
    return ts_ns
