"""Perfetto files for tests, and what they say by the messages of the `perfetto` package alone.

`shown_by` knows what `write_perfetto` writes: one sequence, absolute times, interned names.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as Message
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent

from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.trace import Trace

Row = tuple[Any, ...]
UNFINISHED = -1


@dataclass
class Shown:
    """Slices as (process, path, name, category, ts, dur), counters as (process, path, unit, ts,
    value), arrows by id, and the annotations of each slice, all in the order of the file.
    """

    slices: list[Row] = field(default_factory=list)
    counters: list[Row] = field(default_factory=list)
    arrows: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    annotations: list[dict[str, Any]] = field(default_factory=list)
    descriptors: dict[int, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)


def content(path: Path) -> Message:
    """All packets of a file."""
    found = path.read_bytes()
    return Message.FromString(gzip.decompress(found) if path.suffix == ".gz" else found)


def shown_by(path: Path) -> Shown:
    """What the file shows; every slice must end on the track that it began on, inner ones first."""
    shown, names = Shown(), dict[tuple[str, int], str]()
    opened: dict[int, list[int]] = defaultdict(list)
    for packet in content(path).packet:
        for kind, entries in packet.interned_data.ListFields():
            names |= {(kind.name, entry.iid): entry.name for entry in entries}
        for said in packet.chrome_events.metadata:
            shown.metadata[said.name] = json.loads(said.json_value)
        if packet.HasField("track_descriptor"):
            shown.descriptors[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            _add(shown, names, opened[packet.track_event.track_uuid], packet)
    return shown


def _add(
    shown: Shown, names: Mapping[tuple[str, int], str], opened: list[int], packet: Any
) -> None:
    event, ts_ns = packet.track_event, packet.timestamp
    where = _place(shown, event.track_uuid)
    if event.type == TrackEvent.TYPE_COUNTER:
        counter = shown.descriptors[event.track_uuid].counter
        unit = counter.unit_name if counter.HasField("unit_name") else None
        shown.counters.append((*where, unit, ts_ns, event.double_counter_value))
    elif event.type == TrackEvent.TYPE_SLICE_END:
        begun = opened.pop()
        *rest, from_ns, _ = shown.slices[begun]
        shown.slices[begun] = (*rest, from_ns, ts_ns - from_ns)
    else:
        is_instant = event.type == TrackEvent.TYPE_INSTANT
        if not is_instant:
            opened.append(len(shown.slices))
        name = names["event_names", event.name_iid]
        categories = [names["event_categories", iid] for iid in event.category_iids]
        dur_ns = 0 if is_instant else UNFINISHED
        shown.slices.append((*where, name, *(categories or (None,)), ts_ns, dur_ns))
        shown.annotations.append(_annotations(event.debug_annotations, names))
        for arrow in (*event.flow_ids, *event.terminating_flow_ids):
            shown.arrows[arrow].append(name)


def _place(shown: Shown, uuid: int) -> tuple[str, str]:
    """Process and path of a track."""
    path: list[str] = []
    descriptor = shown.descriptors[uuid]
    while descriptor.HasField("parent_uuid"):
        path.insert(0, descriptor.name)
        descriptor = shown.descriptors[descriptor.parent_uuid]
    return descriptor.process.process_name, " / ".join(path)


def _annotations(found: Iterable[Any], names: Mapping[tuple[str, int], str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for annotation in found:
        kind = annotation.WhichOneof("value")
        value: Any = getattr(annotation, kind) if kind else None
        name = names["debug_annotation_names", annotation.name_iid]
        values[name] = json.loads(value) if kind == "legacy_json_value" else value
    return values


def pack(*packets: Mapping[str, Any]) -> bytes:
    """A file of packets of sequence 1, unless they say another, that clears its state first."""
    rows = [{"trusted_packet_sequence_id": 1, **packet} for packet in packets]
    if rows:
        rows[0] = {"sequence_flags": 1, **rows[0]}
    packed: bytes = Message(packet=rows).SerializeToString()
    return packed


def open_packets(folder: Path, *packets: Mapping[str, Any], limits: Limits = DEFAULTS) -> Trace:
    """Write packets to a file and open it."""
    file = folder / "trace.pftrace"
    file.write_bytes(pack(*packets))
    return Trace.open(file, limits=limits)


def event(ts_ns: int, kind: int, name: str | None = None, **fields: Any) -> dict[str, Any]:
    """A packet with an event (1 begins, 2 ends, 3 is an instant, 4 a sample), on track 1."""
    said = {"type": kind, "track_uuid": 1, **fields} | ({} if name is None else {"name": name})
    return {"timestamp": ts_ns, "track_event": said}


def _legacy(phase: str, ts_us: int, name: str, **fields: Any) -> dict[str, Any]:
    said = {"phase": ord(phase), **fields}
    return {"track_event": {"name": name, "timestamp_delta_us": ts_us, "legacy_event": said}}


_THREAD = {"pid": 1, "tid": 2, "thread_name": "main", "reference_timestamp_us": 1000}
LEGACY = (
    {"thread_descriptor": _THREAD},
    _legacy("X", 1, "whole", duration_us=9), _legacy("X", 4, "crossing", duration_us=9),
    _legacy("B", 10, "open"), _legacy("E", 1, "open"), _legacy("i", 0, "mark"),
    _legacy("b", 1, "io", unscoped_id=5), _legacy("e", 1, "io", unscoped_id=5),
    _legacy("s", 0, "arrow", unscoped_id=6), _legacy("f", 1, "arrow", unscoped_id=6),
    _legacy("?", 1, "odd"),
)  # fmt: skip
"""Events of every phase, as files had them before tracks had descriptors."""
