"""What the packets of a file say of later ones, of tracks, clocks and the file itself."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.perfetto.packets.sequence import Sequence
from stepscope.ingest.readers.perfetto.packets.snapshots import Clock, Clocks
from stepscope.ingest.readers.perfetto.packets.texts import text
from stepscope.ingest.readers.perfetto.packets.track_event import Unread
from stepscope.ingest.readers.perfetto.packets.tracks import Tracks
from stepscope.ingest.readers.text.letters import with_whole_letters

STATE_CLEARED = 1  # TracePacket.sequence_flags


class State:
    """Sequences, tracks, clocks and metadata, as far as the file was read."""

    def __init__(self, limits: Limits) -> None:
        self.tracks = Tracks(limits.tracks)
        self.clocks = Clocks()
        self.metadata: dict[str, Any] = {}
        self.read: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self.num_dropped = 0
        self._sequences: dict[int, Sequence] = {}
        self._taken: Mapping[str, Callable[[Any, Sequence], None]] = {
            "track_descriptor": self._track,
            "process_descriptor": self._process,
            "thread_descriptor": self._thread,
            "process_tree": self._process_tree,
            "clock_snapshot": self._clocks_shown,
            "chrome_events": self._chrome_events,
        }

    def sequence(self, number: int) -> Sequence:
        """The sequence of that number."""
        return self._sequences.get(number) or self._sequences.setdefault(number, Sequence(number))

    def prepare(self, said: Any, sequence: Sequence) -> None:
        """Take over what a packet says of itself and later ones."""
        if said.sequence_flags & STATE_CLEARED or said.incremental_state_cleared:
            sequence.clear()
        self.num_dropped += said.previous_packet_dropped
        if said.HasField("interned_data"):
            sequence.intern(said.interned_data)
        if said.HasField("trace_packet_defaults"):
            sequence.set_defaults(said.trace_packet_defaults)

    def take(self, kind: str, said: Any, sequence: Sequence) -> None:
        """Take over a packet that is not an event, or count it as skipped."""
        if kind in self._taken:
            self.read[kind.replace("_", " ")] += 1
            self._taken[kind](getattr(said, kind), sequence)
        else:
            self.skipped[f"{kind} packets"] += 1

    def clock(self, clock_id: int, sequence: Sequence) -> Clock | None:
        """The clock of a timestamp (0: the sequence's), None for the trace's; raises `Unread`."""
        clock_id = clock_id or sequence.clock_id
        if clock_id in (0, self.clocks.trace_clock):
            return None
        clock = self.clocks.find(sequence.number, clock_id)
        if clock is None:
            raise Unread(f"time on clock {clock_id}, which no snapshot ties to the trace's")
        return clock

    def _track(self, descriptor: Any, _: Sequence) -> None:
        self.tracks.describe(descriptor)

    def _process(self, descriptor: Any, _: Sequence) -> None:
        self.tracks.name_process(descriptor)

    def _thread(self, descriptor: Any, sequence: Sequence) -> None:
        """Before tracks had descriptors, a sequence was a thread, and counted from a time."""
        sequence.last_us = descriptor.reference_timestamp_us
        sequence.thread = self.tracks.describe_thread(descriptor)

    def _process_tree(self, tree: Any, _: Sequence) -> None:
        for process in tree.processes:
            self.tracks.name_process(process)
        for thread in tree.threads:
            self.tracks.name_thread(thread.tgid, thread.tid, thread.name)

    def _clocks_shown(self, snapshot: Any, sequence: Sequence) -> None:
        self.clocks.snapshot(sequence.number, snapshot)

    def _chrome_events(self, bundle: Any, _: Sequence) -> None:
        """Metadata; events of Chrome before 2019 are left out."""
        for said in bundle.metadata:
            kind = said.WhichOneof("value")
            if kind is not None:
                self.metadata[text(said.name)] = _plain(kind, getattr(said, kind))
        for field, value in bundle.ListFields():
            if field.name != "metadata":
                self.skipped[f"chrome_events.{field.name}"] += len(value)


def _plain(kind: str, value: Any) -> Any:
    if kind not in ("json_value", "string_value"):
        return value
    found = text(value)
    try:
        return json.loads(with_whole_letters(found)) if kind == "json_value" else found
    except (ValueError, RecursionError):
        return found
