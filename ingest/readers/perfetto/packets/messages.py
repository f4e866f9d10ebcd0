"""Packets read one by one, as messages: all that are not plain, and what they say of later ones."""

from __future__ import annotations

from typing import Any

import polars as pl
from google.protobuf.message import DecodeError
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket

from stepscope.ingest.limits import Limits, raised_by
from stepscope.ingest.readers.gathered import Rows
from stepscope.ingest.readers.perfetto.collect import EventRows
from stepscope.ingest.readers.perfetto.packets.sequence import Sequence
from stepscope.ingest.readers.perfetto.packets.snapshots import LIMIT_NS
from stepscope.ingest.readers.perfetto.packets.state import State
from stepscope.ingest.readers.perfetto.packets.track_event import (
    EXTRA,
    EXTRA_DOUBLE,
    TIMES,
    TRACK,
    VALUES,
    EventParser,
    Said,
    Unread,
    role_of,
)
from stepscope.ingest.readers.perfetto.packets.tracks import Key

_FIELDS = TracePacket.DESCRIPTOR.fields_by_name
_EVENT, _STAMP = _FIELDS["track_event"], _FIELDS["timestamp"]
_CLOCK = _FIELDS["timestamp_clock_id"]
_OTHER_THAN_SLICES = frozenset((*VALUES, *EXTRA, *EXTRA_DOUBLE))
_SAMPLE = {"packet": pl.Int64, "ts_ns": pl.Int64, "track": pl.Int64, "value": pl.Float64}


class Messages:
    """Takes packets, and keeps their events and samples; counts what it skips."""

    def __init__(self, limits: Limits) -> None:
        self.state = State(limits)
        self.parser = EventParser(limits.text, limits.depth)
        self.events = EventRows()
        self.samples = Rows(_SAMPLE)
        self._limits = limits

    def __len__(self) -> int:
        return len(self.events) + len(self.samples)

    def decoded(self, packet: bytes) -> Any | None:
        """A packet as a message; None, and counted, if it is none."""
        try:
            return TracePacket.FromString(packet)
        except DecodeError:
            self.state.skipped["packets that cannot be decoded"] += 1
            return None

    def take(self, said: Any, number: int, ts_ns: int | None = None) -> None:
        """Take over what a packet says: the one of that number, at that time if it is known."""
        sequence = self.state.sequence(said.trusted_packet_sequence_id)
        self.state.prepare(said, sequence)
        if said.HasField("track_event"):
            self._take_event(dict(said.ListFields()), sequence, number, ts_ns)
        elif kind := said.WhichOneof("data"):
            self.state.take(kind, said, sequence)
        else:
            self.state.read["state of a sequence"] += 1

    def repaired(self) -> dict[str, int]:
        """What was kept in part, counted."""
        parser, limits = self.parser, self._limits
        found = {
            f"text of more than {limits.text:,} bytes ({raised_by('text')})": parser.num_long,
            f"args deeper than {limits.depth:,} left out ({raised_by('depth')})": parser.num_deep,
            "names that the file lacks": parser.num_unnamed,
            f"events on tracks beyond {limits.tracks:,}, shown as one ({raised_by('tracks')})":
                self.state.tracks.num_beyond,
        }  # fmt: skip
        return {what: num for what, num in found.items() if num}

    def _take_event(self, fields: Said, sequence: Sequence, number: int, ts_ns: int | None) -> None:
        said = dict(fields[_EVENT].ListFields())
        try:
            if ts_ns is None:  # first of all: clocks move on by events of any kind
                ts_ns = self._time_ns(fields, said, sequence)
            role = role_of(said)
        except Unread as reason:
            self.state.skipped[str(reason)] += 1
            return
        key = track_of(said, sequence)
        if not _OTHER_THAN_SLICES.isdisjoint(said):
            self._add_samples(said, role, number, ts_ns, key, sequence)
        if role != "counter":
            track = self.state.tracks.number(key)
            self.events.add(number, ts_ns, self.parser.parse(said, role, track, sequence))

    def _time_ns(self, fields: Said, said: Said, sequence: Sequence) -> int:
        """When an event happened; raises `Unread`."""
        clock = self.state.clock(fields.get(_CLOCK, 0), sequence)
        stamp = fields.get(_STAMP)
        if stamp is None:
            ts_ns = _event_ns(said, sequence)
        else:
            ts_ns = stamp if clock is None else clock.time_ns(stamp)
        if not -LIMIT_NS < ts_ns < LIMIT_NS:
            raise Unread("time beyond this era")
        return ts_ns

    def _add_samples(
        self,
        said: Said,
        role: str,
        number: int,
        ts_ns: int,
        key: Key | None,
        sequence: Sequence,
    ) -> None:
        samples: list[tuple[Key | None, float]] = []
        if role == "counter":
            self.state.read[role] += 1
            samples.append((key, next((said[each] for each in VALUES if each in said), 0)))
        for (uuids, values), known in (
            (EXTRA, sequence.counters),
            (EXTRA_DOUBLE, sequence.double_counters),
        ):
            samples += zip(said.get(uuids, known), said.get(values, ()), strict=False)
        for track, value in samples:
            self.samples.add((number, ts_ns, self.state.tracks.number(track), float(value)))


def track_of(said: Said, sequence: Sequence) -> Key | None:
    """The track of an event, None where there is none."""
    return said.get(TRACK, sequence.default_track()) or None


def _event_ns(said: Said, sequence: Sequence) -> int:
    """When an event of an older file happened, whose packet has no time; raises `Unread`."""
    delta, absolute = TIMES
    if absolute in said:
        return int(said[absolute]) * 1000
    if delta not in said:
        raise Unread("no timestamp")
    sequence.last_us += said[delta]
    return sequence.last_us * 1000
