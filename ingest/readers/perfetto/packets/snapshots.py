"""Times of a Perfetto file on one clock: packets may count on others, or from the one before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stepscope.ingest.readers.encodings.protobuf_columns import Numbers, Places

LIMIT_NS = 1 << 62
BOOTTIME, REALTIME = 6, 1
_OF_SEQUENCE = range(64, 128)
_BUILTIN = range(1, 64)


@dataclass(slots=True, eq=False)
class Clock:
    """A clock other than the trace's: what it counts, and how much later the trace's is."""

    offset_ns: int
    unit_ns: int = 1
    is_incremental: bool = False
    last: int = 0

    def time_ns(self, stamp: int) -> int:
        """The trace's time of a stamp; an incremental clock moves on by it."""
        if self.is_incremental:
            self.last += stamp
            stamp = self.last
        return stamp * self.unit_ns + self.offset_ns

    def times_ns(self, stamps: Numbers) -> Places | None:
        """The same of many in a row; None, and nothing moves on, where one is absurd."""
        most = int(stamps.max())
        if self.is_incremental:
            most = self.last + most * len(stamps)
        if most * self.unit_ns + abs(self.offset_ns) >= LIMIT_NS:
            return None
        counted = stamps.astype(np.int64)
        if self.is_incremental:
            counted = counted.cumsum() + self.last
            self.last = int(counted[-1])
        return counted * self.unit_ns + self.offset_ns


SAME = Clock(0)
"""A clock that is the trace's, or taken for it."""


class Clocks:
    """The clocks of a file, as its snapshots tie them to the trace's."""

    def __init__(self) -> None:
        self.trace_clock = BOOTTIME
        self.epoch_ns = 0
        self.taken_for_the_traces: set[int] = set()
        self._clocks: dict[tuple[int, int], Clock] = {}

    def snapshot(self, sequence: int, snapshot: Any) -> None:
        """Take over what several clocks show at one moment."""
        self.trace_clock = snapshot.primary_trace_clock or self.trace_clock
        shown = {each.clock_id: each.timestamp * _unit_ns(each) for each in snapshot.clocks}
        now_ns = shown.get(self.trace_clock)
        if now_ns is None:
            now_ns = self._now_ns(sequence, shown)
        if now_ns is None:
            return
        for each in snapshot.clocks:
            offset_ns = now_ns - shown[each.clock_id]
            clock = Clock(offset_ns, _unit_ns(each), each.is_incremental, each.timestamp)
            self._clocks[_key(sequence, each.clock_id)] = clock
        if REALTIME in shown and not self.epoch_ns:
            epoch_ns = shown[REALTIME] - now_ns
            self.epoch_ns = epoch_ns if abs(epoch_ns) < LIMIT_NS else 0

    def find(self, sequence: int, clock_id: int) -> Clock | None:
        """The clock of that number, None where nothing ties it to the trace's.

        Clocks of the system are taken for the trace's where no snapshot has them.
        """
        found = self._clocks.get(_key(sequence, clock_id))
        if found is None and (clock_id in _BUILTIN or clock_id == self.trace_clock):
            if clock_id != self.trace_clock:
                self.taken_for_the_traces.add(clock_id)
            return SAME
        return found

    def _now_ns(self, sequence: int, shown: dict[int, int]) -> int | None:
        """The trace's time of a snapshot without the trace's clock, by another that is known."""
        for clock_id, at_ns in shown.items():
            if clock := self._clocks.get(_key(sequence, clock_id)):
                return at_ns + clock.offset_ns
        return None


def _unit_ns(clock: Any) -> int:
    return int(clock.unit_multiplier_ns) or 1


def _key(sequence: int, clock_id: int) -> tuple[int, int]:
    return (sequence if clock_id in _OF_SEQUENCE else 0), clock_id
