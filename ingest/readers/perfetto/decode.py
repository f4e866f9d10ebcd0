"""Events of a Perfetto file, as its packets say them one after the other.

Packets are read in runs: one ends where clocks, tracks or names begin to mean something else.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from stepscope.ingest.limits import Limits, raised_by
from stepscope.ingest.readers.perfetto.compressed import KINDS, Compressed
from stepscope.ingest.readers.perfetto.packets.messages import Messages
from stepscope.ingest.readers.perfetto.packets.plain import plain
from stepscope.ingest.readers.perfetto.packets.runs import FEW, Runs
from stepscope.ingest.readers.perfetto.split import Packets

AT_A_TIME = 1 << 15
"""So many packets are read at a time, and so many of their events put in order."""


class Events:
    """Takes packets; `messages` has what they say, `beyond` tells which limit ended it."""

    def __init__(self, limits: Limits) -> None:
        self.messages = Messages(limits)
        self.compressed = Compressed(limits)
        self.beyond: str | None = None
        self._limit = limits.events
        self._runs = Runs(self.messages, limits)
        self._num_packets = 0

    def add(self, packets: Packets) -> None:
        """Read packets, up to the limit of events."""
        for part in packets.parts(AT_A_TIME):
            self._add_part(part)
            self.messages.events.end_part(at_least=AT_A_TIME)
            if len(self.messages) > self._limit:
                self.beyond = f"more than {self._limit:,} events ({raised_by('events')})"
                break

    def _add_part(self, part: Packets) -> None:
        if len(part) < FEW:
            self._add_each(part, 0, len(part))
            return
        found = plain(part)
        borders = [0, *np.flatnonzero(found.is_border).tolist(), len(part)]
        for first, last in pairwise(borders):
            if last - first < FEW:
                self._add_each(part, first, last)
                continue
            self._add_each(part, first, first + 1)
            number = self._num_packets
            self._num_packets += last - first - 1
            self._runs.read(part, found, first + 1, last, number)

    def _add_each(self, part: Packets, first: int, last: int) -> None:
        for row in range(first, last):
            self._num_packets += 1
            said = self.messages.decoded(part[row])
            if said is None:
                continue
            kind = said.WhichOneof("data")
            if kind in KINDS and not self.compressed.is_open:
                self.messages.state.read[kind.replace("_", " ")] += 1
                for packets in self.compressed.packets(kind, getattr(said, kind)):
                    self.add(packets)
            else:
                self.messages.take(said, self._num_packets - 1)
