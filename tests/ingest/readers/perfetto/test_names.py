"""What packets and sequences name: tracks, processes, arguments, collectives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.ingest.kineto_files import rows
from tests.ingest.perfetto_files import event, open_packets
from tests.ingest.readers.perfetto.test_reader import NAMED, report_of


def test_threads_of_processes_and_tracks_of_tracks_are_named(tmp_path: Path) -> None:
    descriptors = [
        {"uuid": 1, "parent_uuid": 9, "thread": {"pid": 7, "tid": 8, "thread_name": "main"}},
        {"uuid": 9, "process": {"pid": 7, "process_name": "server"}},
        {"uuid": 2, "thread": {"pid": 7, "tid": 10}},
        {"uuid": 3, "parent_uuid": 1, "name": "queue"},
        {"uuid": 4, "parent_uuid": 1, "name": "queue"},
        {"uuid": 5, "thread": {"pid": 3, "tid": 3}},
        {"uuid": 6, "parent_uuid": 6, "name": "its own parent"},
    ]
    events = [event(uuid, 3, "a", track_uuid=uuid) for uuid in (1, 2, 3, 4, 5, 6, 77, 0)]
    packets = [{"track_descriptor": each} for each in descriptors]

    trace = open_packets(tmp_path, *events, *packets)

    tracks = rows(
        trace.__class__.from_tables({"spans": trace.spans.sort("ts_ns")}, trace.manifest),
        "spans",
        "track",
    )
    assert tracks == [
        "global", "server / main", "server / thread 10", "server / main / queue",
        "server / main / queue #2", "process 3 / thread 3", "its own parent", "track 77",
    ]  # fmt: skip


def test_processes_that_are_ranks_give_their_rows_to_them(tmp_path: Path) -> None:
    packets = []
    for uuid, name in ((1, "rank 3"), (2, "Rank-5")):
        packets.append(
            {"track_descriptor": {"uuid": uuid, "process": {"pid": uuid, "process_name": name}}}
        )
        packets.append(
            {"track_descriptor": {"uuid": uuid + 10, "parent_uuid": uuid, "name": "gpu"}}
        )
        packets += [
            event(1, 1, "step[DECODE bs=2]", track_uuid=uuid + 10),
            event(3, 2, track_uuid=uuid + 10),
        ]

    trace = open_packets(tmp_path, *packets)

    assert trace.manifest.ranks == (3, 5)
    assert rows(trace, "spans", "rank", "track", "step") == [(3, "gpu", 1), (5, "gpu", 1)]
    assert rows(trace, "steps", "rank", "kind") == [(3, "decode"), (5, "decode")]
    assert report_of(trace).inferred == {"steps from step[MODE bs=R]": 2}


def test_collectives_and_correlations_are_inferred_as_from_json(tmp_path: Path) -> None:
    def said(**values: Any) -> list[dict[str, Any]]:
        return [
            {"name": name, "int_value" if isinstance(value, int) else "string_value": value}
            for name, value in values.items()
        ]

    call = {"Collective name": "allreduce", "External id": 4, "In msg nelems": 8, "dtype": "Float"}
    launch = event(1, 1, "record_param_comms", debug_annotations=said(**call))
    other = event(20, 1, "k", correlation_id=12)

    trace = open_packets(tmp_path, NAMED, launch, event(5, 2), other, event(21, 2))

    assert rows(trace, "collectives", "op", "num_bytes", "dur_ns") == [("allreduce", 32, None)]
    assert rows(trace, "spans", "correlation") == [4, 12]
