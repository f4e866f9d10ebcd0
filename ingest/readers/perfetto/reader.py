"""Reader of Perfetto's protobuf: traces of its SDK, of Chrome and Android, of stepscope.

The format: https://perfetto.dev/docs/reference/trace-packet-proto
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.ingest.derive.steps import UNREAD, about_unread
from stepscope.ingest.errors import LimitExceeded, TraceError, TruncatedTrace
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import CLOCKS, ClockInfo, Manifest, ReadReport
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.inflate import blocks_of
from stepscope.ingest.readers.perfetto.split import PacketStream, is_trace
from stepscope.ingest.readers.profiles import num_inferred, rank_in_name
from stepscope.ingest.readers.seam import OneFile
from stepscope.ingest.readers.xplane.split import is_xspace

if TYPE_CHECKING:
    from stepscope.ingest.readers.perfetto.decode import Events
    from stepscope.ingest.readers.perfetto.packets.tracks import Place
    from stepscope.ingest.readers.perfetto.tables import PerfettoTables

_KEPT_CHARS = 4096


class PerfettoReader(OneFile):
    """Reads tracks, slices, counters and flows, and counts every packet that holds others."""

    name = "Perfetto protobuf (.pftrace, .pftrace.gz)"
    one_per_rank = True

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell packets of known fields, one after the other, by its first bytes."""
        return is_trace(head) and not is_xspace(head)

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read spans, flows and counters, and infer steps and collectives; raises `TraceError`."""
        # The messages take longer to import than a small file to read.
        from stepscope.ingest.readers.perfetto.decode import Events  # noqa: PLC0415 - slow to import
        from stepscope.ingest.readers.perfetto.tables import perfetto_tables  # noqa: PLC0415 - the same

        blocks = blocks_of(path, progress, limits)
        stream = PacketStream(blocks, limits)
        events = Events(limits)
        for packets in stream:
            events.add(packets)
            if events.beyond:
                break
        messages = events.messages
        state = messages.state
        found = perfetto_tables(
            messages.events.tables(), messages.samples.frame().sort("packet", maintain_order=True),
            places := state.tracks.places(), _rank(path, places),
        )  # fmt: skip
        ended = blocks.damage or events.beyond or ("cut off" if stream.cut_off else None)
        if not (found.tables or state.read) and ended:
            if events.beyond:
                raise LimitExceeded(events.beyond, where=str(path))
            what = f"{ended} after {stream.num_bytes} bytes, before the first whole event"
            raise TruncatedTrace(what, where=str(path), todo="record or copy it again")
        skipped = state.skipped + Counter(found.skipped) + Counter(stream.skipped())
        if skipped and not (found.tables or state.read):
            what = "none of its packets can be decoded"
            raise TraceError(what, where=str(path), todo="record or copy it again")
        report = ReadReport(
            read=found.read | dict(state.read),
            skipped=dict(
                skipped
                + Counter(events.compressed.skipped)
                + Counter({UNREAD: sum(found.unread_tags.values())})
            ),
            repaired=found.repaired | messages.repaired(),
            inferred=num_inferred(found.tables),
            notes=(
                *_notes(stream, events, ended),
                *found.notes,
                *about_unread(found.unread_tags),
            ),
        )
        return found.tables, _manifest(events, report, found, closed=ended is None)


def _rank(path: Path, places: list[Place]) -> int:
    """The rank of what names none: the file's by its name, else that which all others name."""
    if (said := rank_in_name(path)) is not None:
        return said
    told = {place.rank for place in places if place.rank is not None}
    return told.pop() if len(told) == 1 else 0


def _notes(stream: PacketStream, events: Events, ended: str | None) -> list[str]:
    notes = []
    if ended:
        notes.append(f"{ended} after {stream.num_bytes} bytes of content; all before is kept")
    if stream.num_lost:
        notes.append(f"{stream.num_lost} bytes that are not packets passed over")
    if events.messages.state.num_dropped:
        notes.append(
            f"packets were lost while recording, {events.messages.state.num_dropped} times"
        )
    taken = sorted(events.messages.state.clocks.taken_for_the_traces)
    return notes + [f"clock {clock} taken for the trace's: no snapshot has it" for clock in taken]


def _manifest(
    events: Events, report: ReadReport, found: PerfettoTables, *, closed: bool
) -> Manifest:
    said = events.messages.state.metadata
    ours = said.pop("stepscope", None)
    producer, version, clock = _producer(ours, said)
    state = "complete" if closed else "partial"
    epoch_ns = ours.get("epoch_ns") if isinstance(ours, dict) else None
    if not isinstance(epoch_ns, int) or abs(epoch_ns) >= 1 << 62:
        epoch_ns = events.messages.state.clocks.epoch_ns
    return Manifest(
        producer=producer,
        producer_version=version,
        clock=ClockInfo(clock, epoch_ns),
        ranks=found.ranks or (0,),
        config={name: value for name, value in said.items() if _is_short(value)},
        tables={
            name: "inferred" if "inferred" in table.lazy().collect_schema() else state
            for name, table in found.tables.items()
        },
        closed=closed,
        report=report,
    )


def _producer(ours: object, said: dict[str, Any]) -> tuple[str, str, str]:
    """Who recorded it: name, version and kind of clock."""
    if isinstance(ours, dict) and ours.get("clock") in CLOCKS:
        names = (ours.get("producer"), ours.get("producer_version"))
        producer, version = (name if isinstance(name, str) else "" for name in names)
        return producer, version, ours["clock"]
    product = said.get("product-version")
    return ("Perfetto", product if isinstance(product, str) else "", "profiler")


def _is_short(value: object) -> bool:
    try:
        return len(json.dumps(value)) <= _KEPT_CHARS
    except (ValueError, RecursionError):
        return False
