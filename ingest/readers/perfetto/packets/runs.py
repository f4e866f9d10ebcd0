"""Runs of packets among which no clock changes: the plain ones of them are read all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket

from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.encodings.protobuf_columns import Numbers, Places
from stepscope.ingest.readers.perfetto.packets.messages import Messages, track_of
from stepscope.ingest.readers.perfetto.packets.plain import SAMPLE, Columns, Flags, Plain, numbered
from stepscope.ingest.readers.perfetto.packets.plain_arguments import read_arguments
from stepscope.ingest.readers.perfetto.packets.sequence import Sequence
from stepscope.ingest.readers.perfetto.packets.snapshots import SAME, Clock
from stepscope.ingest.readers.perfetto.packets.track_event import (
    KINDS,
    TYPE,
    Said,
    Unread,
)
from stepscope.ingest.readers.perfetto.split import Packets

FEW = 256
"""Of so few packets each is read by itself: that takes less time."""
OfTemplate = Callable[[Said, Sequence, int], int]
"""Gives a number for the event and its sequence, of which there are so many."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Packets in columns; `number` is that of the first, `ts_ns` the time of those `is_timed`."""

    packets: Packets
    found: Plain
    number: int
    ts_ns: Places
    is_timed: Flags

    def others(self, first: int, last: int) -> list[int]:
        """Rows that are to be read one by one."""
        is_plain = self.found.is_plain[first:last] & self.is_timed[first:last]
        return (first + np.flatnonzero(~is_plain)).tolist()

    def plain(self, first: int, last: int) -> Places:
        """Rows that need not."""
        is_plain = self.found.is_plain[first:last] & self.is_timed[first:last]
        return first + np.flatnonzero(is_plain)

    def time_ns(self, row: int) -> int | None:
        """When it was, None where nobody knows yet."""
        return int(self.ts_ns[row]) if self.is_timed[row] else None


class Runs:
    """Reads runs; `messages` takes what they say."""

    def __init__(self, messages: Messages, limits: Limits) -> None:
        self._messages = messages
        self._state = messages.state
        self._limit_text = limits.text

    def read(self, packets: Packets, found: Plain, first: int, last: int, number: int) -> None:
        """Read rows of packets, the first of which has that number.

        What is not plain comes first, up to where a text is another one's: what it says of later
        packets is no more than new texts, tracks and names.
        """
        run = _Run(packets, found, number - first, *self._times(found, first, last))
        for row in run.others(first, last):
            said = self._messages.decoded(packets[row])
            if said is None:
                continue
            if said.HasField("interned_data") and self._says_otherwise(said):
                self._read_plain(run, first, row)
                first = row
            self._messages.take(said, run.number + row, run.time_ns(row))
        self._read_plain(run, first, last)

    def _times(self, found: Plain, first: int, last: int) -> tuple[Places, Flags]:
        num = len(found.is_event)
        ts_ns, is_timed = np.zeros(num, np.int64), np.zeros(num, np.bool_)
        rows = first + np.flatnonzero(found.is_event[first:last])
        for clock, which in self._clocks(found.sequence[rows], found.clock[rows]):
            its = rows[which]
            times = clock.times_ns(found.stamp[its])
            if times is not None:
                ts_ns[its], is_timed[its] = times, True
        return ts_ns, is_timed

    def _clocks(self, sequence: Numbers, clock_id: Numbers) -> Iterator[tuple[Clock, Places]]:
        """Clocks that are known, and which of some packets are on each: some are called twice."""
        said = pl.DataFrame({"sequence": sequence, "clock": clock_id})
        first, which = numbered(said)
        numbers: dict[Clock | None, int] = {}
        clocks = [self._clock(*row) for row in said[first].rows()]
        own = np.array([numbers.setdefault(clock, len(numbers)) for clock in clocks], np.int64)
        by_clock = np.argsort(own[which], kind="stable")
        ends = np.cumsum(np.bincount(own[which], minlength=len(numbers)))
        for clock, last, num in zip(numbers, ends, np.diff(ends, prepend=0), strict=True):
            if clock is not None:
                yield clock, by_clock[last - num : last]

    def _clock(self, sequence: int, clock_id: int) -> Clock | None:
        try:
            return self._state.clock(clock_id, self._state.sequence(sequence)) or SAME
        except Unread:
            return None

    def _says_otherwise(self, said: Any) -> bool:
        sequence = self._state.sequence(said.trusted_packet_sequence_id)
        return sequence.says_otherwise(said.interned_data)

    def _read_plain(self, run: _Run, first: int, last: int) -> None:
        rows = run.plain(first, last)
        if len(rows) < FEW:
            self._read_each(run, rows)
            return
        is_sample = run.found.kind[rows] == SAMPLE
        if is_sample.any():
            self._read_samples(run, rows[is_sample])
        if not is_sample.all():
            self._read_slices(run, rows[~is_sample])

    def _read_each(self, run: _Run, rows: Places) -> None:
        for row in rows.tolist():
            said = TracePacket.FromString(run.packets[row])
            self._messages.take(said, run.number + row, run.time_ns(row))

    def _read_samples(self, run: _Run, rows: Places) -> None:
        self._state.read["counter"] += len(rows)
        track = self._of_each_template(run, rows, self._track)
        value = run.found.value[rows]
        frame = {"packet": run.number + rows, "ts_ns": run.ts_ns[rows], "track": track}
        self._messages.samples.extend(pl.DataFrame({**frame, "value": value}))

    def _read_slices(self, run: _Run, rows: Places) -> None:
        found = run.found
        is_read = np.zeros(len(run.packets), np.bool_)
        is_read[rows] = True
        annotations = found.annotations.of(is_read)
        read = read_arguments(annotations, found.content, found.sequence, self._state.sequence)
        self._read_each(run, read.unread)
        rows = rows[~np.isin(rows, read.unread)]
        correlation = pl.Series(found.correlation[rows].view(np.int64))
        events = pl.DataFrame(
            {
                "packet": run.number + rows,
                "ts_ns": run.ts_ns[rows],
                "template": self._of_each_template(run, rows, self._template),
                "correlation": correlation.set(correlation <= 0, None),
            }
        )
        for event, said in ((read.event, read.args), (read.step_event, read.step)):
            column_of = pl.repeat(None, len(rows), dtype=said.dtype, eager=True)
            column = column_of.scatter(np.searchsorted(rows, event), said)
            events = events.with_columns(column.alias(said.name))
        self._messages.events.extend(self._within_limit(events))

    def _within_limit(self, events: pl.DataFrame) -> pl.DataFrame:
        is_long = (events["args"].str.len_chars() > self._limit_text).fill_null(value=False)
        self._messages.parser.num_long += int(is_long.sum())
        return events.with_columns(pl.when(~is_long).then("args").alias("args"))

    def _of_each_template(self, run: _Run, rows: Places, of_template: OfTemplate) -> Columns:
        """A number for each row, asked for once for rows of one template."""
        _, first, which, nums = np.unique(
            run.found.template[rows], return_index=True, return_inverse=True, return_counts=True
        )
        numbers = []
        for row, num in zip(rows[first].tolist(), nums.tolist(), strict=True):
            packet = TracePacket.FromString(run.packets[row])
            sequence = self._state.sequence(packet.trusted_packet_sequence_id)
            numbers.append(of_template(dict(packet.track_event.ListFields()), sequence, num))
        return np.array(numbers, np.int64)[which]

    def _track(self, said: Said, sequence: Sequence, num: int) -> int:
        return self._state.tracks.number(track_of(said, sequence), num)

    def _template(self, said: Said, sequence: Sequence, num: int) -> int:
        track = self._track(said, sequence, num)
        template = self._messages.parser.template(said, KINDS[said[TYPE]], track, sequence, num)
        return self._messages.events.templates.number(template)
