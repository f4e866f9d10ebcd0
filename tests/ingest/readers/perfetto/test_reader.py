"""Perfetto's protobuf read: tracks, slices, counters, arrows, and what became of every packet."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.errors import TraceError
from stepscope.ingest.manifest import ClockInfo, ReadReport
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.perfetto_files import LEGACY, content, event, open_packets, pack
from tests.tiers import slow

NAMED = {"track_descriptor": {"uuid": 1, "name": "t"}}
SLICE = (event(10, 1, "a"), event(14, 2))


def report_of(trace: Trace) -> ReadReport:
    assert trace.manifest.report is not None
    return trace.manifest.report


def num_in(file: Path) -> int:
    return len(content(file).packet)


def arguments(trace: Trace) -> list[Any]:
    return [json.loads(text) if text else None for text in rows(trace, "spans", "args")]


@slow
@pytest.mark.parametrize("name", ["trace.bin", "trace.json", "x"])
def test_a_file_is_known_by_its_content(tmp_path: Path, name: str) -> None:
    content = pack(NAMED, *SLICE)
    (tmp_path / name).write_bytes(content)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content))

    for file in (name, f"{name}.gz"):
        assert rows(Trace.open(tmp_path / file), "spans", "name", "dur_ns") == [("a", 4)]


def test_a_text_that_begins_with_a_line_break_is_no_trace_of_perfetto(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("\nServer started\n\tok\n" * 9)

    with pytest.raises(TraceError, match="Perfetto protobuf"):
        Trace.open(tmp_path / "x.log")


def test_names_are_those_of_the_sequence_at_that_time(tmp_path: Path) -> None:
    def named(text: str, **fields: Any) -> dict[str, Any]:
        return {"interned_data": {"event_names": [{"iid": 1, "name": text}]}, **fields}

    plain = event(5, 3, name_iid=1)
    trace = open_packets(
        tmp_path,
        named("first"), {**plain, "timestamp": 1}, {**plain, "timestamp": 2},
        named("other", trusted_packet_sequence_id=2, sequence_flags=1),
        {**plain, "timestamp": 3, "trusted_packet_sequence_id": 2}, {**plain, "timestamp": 4},
        named("again", sequence_flags=1), plain, {**plain, "timestamp": 6},
        {"sequence_flags": 1}, {**plain, "timestamp": 7},
    )  # fmt: skip

    names = ["first", "first", "other", "first", "again", "again", "(no name)"]
    assert rows(trace, "spans", "name") == names
    assert report_of(trace).repaired == {"names that the file lacks": 1, "no name": 1}


def test_what_a_packet_leaves_out_is_the_default_of_its_sequence(tmp_path: Path) -> None:
    defaults = {
        "track_uuid": 1,
        "extra_counter_track_uuids": [2],
        "extra_double_counter_track_uuids": [3],
    }
    free, load = {"unit": 3, "unit_multiplier": 10}, {"unit_name": "%"}
    extra = {"extra_counter_values": [7], "extra_double_counter_values": [0.5]}
    trace = open_packets(
        tmp_path, NAMED,
        {"track_descriptor": {"uuid": 2, "name": "free", "counter": free}},
        {"track_descriptor": {"uuid": 3, "name": "load", "parent_uuid": 1, "counter": load}},
        {"trace_packet_defaults": {"track_event_defaults": defaults}},
        {"timestamp": 1, "track_event": {"type": 1, "name": "a", **extra}},
        {"timestamp": 4, "track_event": {"type": 2, **extra}},
        event(9, 4, track_uuid=2, counter_value=-1),
    )  # fmt: skip

    assert rows(trace, "spans", "track", "name", "dur_ns") == [("t", "a", 3)]
    assert rows(trace, "counters", "ts_ns", "track", "name", "unit", "value") == [
        (1, None, "free", "bytes", 70), (1, "t", "load", "%", 0.5),
        (4, None, "free", "bytes", 70), (4, "t", "load", "%", 0.5), (9, None, "free", "bytes", -10),
    ]  # fmt: skip


def test_counters_that_say_how_much_they_grew_are_summed(tmp_path: Path) -> None:
    counter = {"uuid": 1, "name": "n", "counter": {"is_incremental": True}}
    samples = [event(ts, 4, counter_value=ts) for ts in (1, 2, 3)]

    trace = open_packets(tmp_path, {"track_descriptor": counter}, *samples)

    assert rows(trace, "counters", "value") == [1, 3, 6]


def test_times_on_other_clocks_are_moved_to_the_traces(tmp_path: Path) -> None:
    clocks = [
        {"clock_id": 6, "timestamp": 1000}, {"clock_id": 3, "timestamp": 400},
        {"clock_id": 1, "timestamp": 9000},
        {"clock_id": 64, "timestamp": 5, "is_incremental": True, "unit_multiplier_ns": 10},
    ]  # fmt: skip

    def on(clock: int, ts_ns: int, kind: int = 3) -> dict[str, Any]:
        return {**event(ts_ns, kind, "a"), "timestamp_clock_id": clock}

    trace = open_packets(
        tmp_path, NAMED, {"clock_snapshot": {"clocks": clocks}}, on(6, 1007), on(3, 410),
        on(64, 2), on(64, 1), on(64, 1), on(99, 1), on(4, 2000),
    )  # fmt: skip

    assert rows(trace, "spans", "ts_ns") == [1007, 1010, 1020, 1030, 1040, 2000]
    assert trace.manifest.clock == ClockInfo("profiler", 8000)
    (skipped,) = report_of(trace).skipped.items()
    assert skipped == ("time on clock 99, which no snapshot ties to the trace's", 1)
    assert report_of(trace).notes == ("clock 4 taken for the trace's: no snapshot has it",)


def test_begins_and_ends_that_miss_each_other_are_counted(tmp_path: Path) -> None:
    trace = open_packets(
        tmp_path, NAMED, event(1, 2), event(2, 1, "hung"), event(3, 1, "a"), event(4, 2),
        event(5, 1, "b"), event(6, 2), event(7, 2, track_uuid=2),
    )  # fmt: skip

    assert rows(trace, "spans", "name", "form", "dur_ns") == [
        ("hung", "unfinished", None), ("a", "slice", 1), ("b", "slice", 1),
    ]  # fmt: skip
    assert report_of(trace).skipped == {"end without begin": 2}
    assert report_of(trace).repaired == {"begin without end, kept as unfinished": 1}


def test_every_packet_is_read_or_skipped_once(sample_traces: Path, tmp_path: Path) -> None:
    sample = sample_traces / "perfetto_two_ranks.pftrace"
    extra = {"extra_counter_track_uuids": [2], "extra_counter_values": [7]}
    packets = [
        NAMED, *SLICE, event(20, 1, "b", **extra), event(1, 2), *LEGACY, {"sequence_flags": 1},
        {"trace_config": {}}, {"compressed_packets": zlib.compress(pack(*SLICE))},
    ]  # fmt: skip

    trace = open_packets(tmp_path, *packets)

    for each, num_packets in ((trace, len(packets) + 2), (Trace.open(sample), num_in(sample))):
        report = report_of(each)
        assert sum(report.read.values()) + sum(report.skipped.values()) == num_packets


def test_packets_of_other_kinds_are_counted_by_kind(tmp_path: Path) -> None:
    trace = open_packets(
        tmp_path, NAMED, *SLICE, {"ftrace_events": {"cpu": 1}}, {"ftrace_events": {"cpu": 2}},
        {"trace_config": {"duration_ms": 5}}, {"track_event": {"type": 1}, "timestamp": 1 << 63},
        event(1, 5), {"track_event": {"type": 3}}, {"previous_packet_dropped": 1},
        {"chrome_events": {"metadata": [{"name": "os", "string_value": "Linux"}]}},
    )  # fmt: skip

    assert report_of(trace).skipped == {
        "ftrace_events packets": 2, "trace_config packets": 1, "time beyond this era": 1,
        "track event of type 5": 1, "no timestamp": 1,
    }  # fmt: skip
    assert report_of(trace).notes == ("packets were lost while recording, 1 times",)
    assert trace.manifest.config == {"os": "Linux"}


def test_arrows_begin_pass_and_end(tmp_path: Path) -> None:
    trace = open_packets(
        tmp_path, NAMED, event(1, 1, "a", flow_ids=[7, 8]), event(2, 2),
        event(3, 1, "b", flow_ids=[7]), event(4, 2),
        event(5, 1, "c", terminating_flow_ids=[7]), event(6, 2, flow_ids_old=[8]),
    )  # fmt: skip

    assert sorted(rows(trace, "flows", "flow", "ts_ns", "end", "track")) == [
        ("7", 1, "start", "t"), ("7", 3, "step", "t"), ("7", 5, "finish", "t"),
        ("8", 1, "start", "t"), ("8", 6, "finish", "t"),
    ]  # fmt: skip


def test_events_of_older_files_are_read(tmp_path: Path) -> None:
    trace = open_packets(tmp_path, *LEGACY)

    assert sorted(rows(trace, "spans", "ts_ns", "track", "name", "form", "dur_ns")) == [
        (1_001_000, "process 1 / main", "whole", "slice", 9000),
        (1_005_000, "process 1 / main #2", "crossing", "slice", 9000),
        (1_015_000, "process 1 / main", "open", "slice", 1000),
        (1_016_000, "process 1 / main", "mark", "instant", None),
        (1_017_000, "process 1 / async 5", "io", "async", 1000),
    ]
    assert rows(trace, "flows", "flow", "name", "end", "ts_ns") == [
        ("6", "arrow", "start", 1_018_000), ("6", "arrow", "finish", 1_019_000),
    ]  # fmt: skip
    assert report_of(trace).skipped == {"legacy event ?": 1}


def test_annotations_become_arguments(tmp_path: Path) -> None:
    old = {"nested_type": 1, "dict_keys": ["k"], "dict_values": [{"int_value": 2}]}
    several = {"array_values": [{"bool_value": True}]}
    annotations = [
        {"name": "bool", "bool_value": False}, {"name": "uint", "uint_value": (1 << 64) - 1},
        {"name": "int", "int_value": -1}, {"name": "double", "double_value": 0.1},
        {"name": "nan", "double_value": float("nan")}, {"name": "pointer", "pointer_value": 255},
        {"name": "text", "string_value": 'é"\n'}, {"name": "null"}, {"name_iid": 9, "int_value": 1},
        {"name": "json", "legacy_json_value": '{"a": [1]}'},
        {"name": "no json", "legacy_json_value": "{"},
        {"name": "of", "dict_entries": [{"name": "a", "int_value": 1}, {"name": "b", **several}]},
        {"name": "typed", "proto_type_name": "Thing", "proto_value": b"\x01"},
        {"name": "old", "nested_value": old},
    ]  # fmt: skip
    location = {"file_name": "a.cc", "line_number": 4}
    begin = event(1, 1, "a", debug_annotations=annotations, source_location=location)
    end = event(2, 2, debug_annotations=[{"name": "at end", "string_value": "x"}])

    trace = open_packets(tmp_path, NAMED, begin, end)

    assert arguments(trace) == [{
        "bool": False, "uint": (1 << 64) - 1, "int": -1, "double": 0.1, "nan": "nan",
        "pointer": "0xff", "text": 'é"\n', "null": None, "#9": 1, "json": {"a": [1]},
        "no json": "{", "of": {"a": 1, "b": [True]}, "typed": {"Thing": "01"}, "old": {"k": 2},
        "source_location": location, "at end": "x",
    }]  # fmt: skip


def test_texts_that_are_not_utf_8_are_read_all_the_same(tmp_path: Path) -> None:
    annotation = {"name": "KEY?", "string_value": "TEXT"}
    packets: list[dict[str, Any]] = [
        {"track_descriptor": {"uuid": 1, "process": {"pid": 1, "process_name": "PROC"}}},
        {"interned_data": {"event_categories": [{"iid": 1, "name": "CATE"}]}},
        {"chrome_events": {"metadata": [{"name": "META", "string_value": "DATA"}]}},
        event(1, 3, "NAME", category_iids=[1], debug_annotations=[annotation]),
    ]
    content = pack(*packets)
    for word in (b"NAME", b"KEY?", b"TEXT", b"PROC", b"CATE", b"META", b"DATA"):
        content = content.replace(word, b"\xff" + word[1:])
    (tmp_path / "odd.pftrace").write_bytes(content)

    trace = Trace.open(tmp_path / "odd.pftrace")

    columns = ("track", "name", "category", "args")
    assert rows(trace, "spans", *columns) == [
        ("\ufffdROC", "\ufffdAME", "\ufffdATE", '{"\ufffdEY?": "\ufffdEXT"}')
    ]
    assert trace.manifest.config == {"\ufffdETA": "\ufffdATA"}


def test_an_arrow_ends_at_the_slice_that_says_so(tmp_path: Path) -> None:
    hopping = {"legacy_event": {"phase": ord("b"), "unscoped_id": 5}, "flow_ids": [7]}
    trace = open_packets(
        tmp_path,
        NAMED,
        {"timestamp": 1, "track_event": {"track_uuid": 1, "name": "io", **hopping}},
        event(2, 1, "a"),
        event(3, 1, "b", terminating_flow_ids=[7]),
        event(9, 2),
    )

    assert rows(trace, "flows", "ts_ns", "track") == [(1, "t / async 5"), (3, "t")]


@pytest.mark.parametrize("duration_us", [1 << 60, -1])
def test_a_length_beyond_all_times_is_not_known(tmp_path: Path, duration_us: int) -> None:
    legacy = {"phase": ord("X"), "duration_us": duration_us}
    said = {"track_uuid": 1, "name": "io", "legacy_event": legacy}

    trace = open_packets(tmp_path, NAMED, {"timestamp": 1, "track_event": said})

    assert rows(trace, "spans", "ts_ns", "dur_ns", "form") == [(1, None, "unfinished")]


def test_a_clock_that_shows_what_is_no_time_tells_no_epoch(tmp_path: Path) -> None:
    far = {"clock_id": 1, "timestamp": 1 << 63, "unit_multiplier_ns": 1 << 62}
    clocks = {"primary_trace_clock": 6, "clocks": [{"clock_id": 6, "timestamp": 5}, far]}

    trace = open_packets(tmp_path, {"clock_snapshot": clocks}, NAMED, event(2, 3, "a"))

    assert trace.manifest.clock.epoch_ns == 0
