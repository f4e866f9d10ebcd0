"""What each kind of event becomes."""

from __future__ import annotations

import gzip
import json
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.manifest import ReadReport
from stepscope.ingest.readers.chrome.times import nanoseconds
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import open_bytes, open_events, rows, slice_
from tests.looped import looped
from tests.tiers import slow

NESTED_ARGS = {"Input Dims": [[1, 2], []], "of": {"depth": [{"x": "}, {"}, {"y": 1e-9}]}}


def report(trace: Trace) -> ReadReport:
    assert trace.manifest.report is not None
    return trace.manifest.report


def test_a_complete_event_is_a_slice(tmp_path: Path) -> None:
    trace = open_events(tmp_path, slice_("op", 10, 2.5, cat="cpu_op", args={"n": 1}))

    assert rows(trace, "spans", "track", "name", "category", "form", "ts_ns", "dur_ns", "args") == [
        ("process 1 / thread 1", "op", "cpu_op", "slice", 10_000, 2500, '{"n": 1}')
    ]
    assert report(trace).read == {"X": 1}


@pytest.mark.parametrize("indent", [None, 1])
def test_args_of_any_depth_are_kept(tmp_path: Path, indent: int | None) -> None:
    document = {"traceEvents": [slice_("op", 1, 1, args=NESTED_ARGS)]}

    trace = open_bytes(tmp_path, json.dumps(document, indent=indent).encode())

    assert json.loads(rows(trace, "spans", "args")[0]) == NESTED_ARGS


def test_microseconds_since_1970_keep_their_nanoseconds(tmp_path: Path) -> None:
    content = b'[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1790857026000000.123,"dur":0.001}]'

    trace = open_bytes(tmp_path, content)

    assert rows(trace, "spans", "ts_ns", "dur_ns") == [(1790857026000000123, 1)]


@given(st.decimals(-(10**15), 10**15, places=5))
def test_decimal_microseconds_are_rounded_exactly(number: Decimal) -> None:
    written = f"{number:f}"

    read = nanoseconds(pl.Series([written])).item()

    assert read == int((number * 1000).quantize(Decimal(1), ROUND_HALF_UP))


@looped(
    ("written", "ns"),
    [
        ("1e3", 1_000_000),
        ("1.5E-2", 15),
        ('"12.5"', 12_500),
        ("-0.5", -500),
        ("5e-4", 1),
        ("1E-2", 10),
        ("1E400", None),
        ("1e999999999999999999", None),
        ("1e-9999999999", 0),
    ],
)
def test_numbers_may_be_scientific_or_text(written: str, ns: int | None) -> None:
    assert nanoseconds(pl.Series([written])).item() == ns


def test_begin_and_end_are_a_slice_with_both_their_arguments(tmp_path: Path) -> None:
    trace = open_events(
        tmp_path,
        {"ph": "B", "name": "outer", "pid": 1, "tid": 1, "ts": 0, "args": {"a": 1}},
        {"ph": "B", "name": "inner", "pid": 1, "tid": 1, "ts": 2},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 5},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 9, "args": {"b": 2}},
    )

    assert rows(trace, "spans", "name", "dur_ns", "parent", "args") == [
        ("outer", 9000, None, '{"a": 1,"b": 2}'),
        ("inner", 3000, 0, None),
    ]
    assert report(trace).read == {"B": 2, "E": 2}


def test_begins_without_end_stay_unfinished_and_ends_without_begin_are_skipped(
    tmp_path: Path,
) -> None:
    trace = open_events(
        tmp_path,
        {"ph": "E", "name": "before", "pid": 1, "tid": 1, "ts": 0},
        {"ph": "B", "name": "stuck", "pid": 1, "tid": 1, "ts": 1},
        slice_("other", 2, 1, tid=2),
    )

    assert rows(trace, "spans", "name", "form", "dur_ns") == [
        ("other", "slice", 1000),
        ("stuck", "unfinished", None),
    ]
    assert report(trace).skipped == {"end without begin": 1}
    assert report(trace).repaired == {"begin without end, kept as unfinished": 1}


def test_an_end_with_an_empty_name_closes_the_latest_begin(tmp_path: Path) -> None:
    begins = {"ph": "B", "pid": 1, "tid": 1}
    events = [begins | {"name": "outer", "ts": 1}, begins | {"name": "inner", "ts": 2},
              {"ph": "E", "name": "", "pid": 1, "tid": 1, "ts": 5},
              {"ph": "E", "name": "outer", "pid": 1, "tid": 1, "ts": 9}]  # fmt: skip

    trace = open_events(tmp_path, *events)

    assert rows(trace, "spans", "name", "dur_ns") == [("outer", 8_000), ("inner", 3_000)]
    assert report(trace).skipped == {}


def test_asynchronous_events_pair_by_id_on_a_track_of_their_own(tmp_path: Path) -> None:
    request = {"cat": "request", "name": "generate", "pid": 1}
    trace = open_events(
        tmp_path,
        {**request, "ph": "b", "id": "0x2", "tid": 1, "ts": 0},
        {**request, "ph": "b", "id2": {"local": "0x3"}, "tid": 1, "ts": 1},
        {**request, "ph": "n", "id": "0x2", "tid": 1, "ts": 2},
        {**request, "ph": "e", "id": "0x2", "tid": 9, "ts": 7},
        {**request, "ph": "e", "id2": {"local": "0x3"}, "tid": 9, "ts": 8},
    )

    assert rows(trace, "spans", "track", "form", "ts_ns", "dur_ns") == [
        ("process 1 / request 0x2", "async", 0, 7000),
        ("process 1 / request 0x3", "async", 1000, 7000),
        ("process 1 / request 0x2", "instant", 2000, None),
    ]


@slow
@looped("ph", ["i", "I", "R", "P"])
def test_instants_and_samples_have_no_duration(tmp_path: Path, ph: str) -> None:
    trace = open_events(tmp_path, {"ph": ph, "name": "mark", "ts": 3, "pid": "", "tid": ""})

    assert rows(trace, "spans", "track", "name", "form", "dur_ns") == [
        ("global", "mark", "instant", None)
    ]


def test_counters_give_a_row_per_number(tmp_path: Path) -> None:
    trace = open_events(
        tmp_path,
        {"ph": "C", "name": "queue", "pid": 1, "ts": 1, "args": {"waiting": 3, "running": "2"}},
        {"ph": "C", "name": "KV blocks", "pid": 1, "ts": 2, "args": {"value": 0.5}},
        {"ph": "C", "name": "empty", "pid": 1, "ts": 3, "args": {"text": "high", "on": True}},
    )

    assert rows(trace, "counters", "track", "name", "ts_ns", "value") == [
        ("process 1", "queue waiting", 1000, 3.0),
        ("process 1", "queue running", 1000, 2.0),
        ("process 1", "KV blocks", 2000, 0.5),
    ]
    assert report(trace).skipped == {"counter without a number": 1}


def test_flows_touch_the_lane_of_the_slice_begun_last(tmp_path: Path) -> None:
    arrow = {"cat": "ac2g", "name": "ac2g", "id": 7, "pid": 1, "tid": 1}
    trace = open_events(
        tmp_path,
        slice_("launch", 0, 5),
        slice_("overlapping", 3, 9),
        {**arrow, "ph": "s", "ts": 0},
        {**arrow, "ph": "f", "bp": "e", "ts": 3},
        {"ph": "f", "name": "without id", "pid": 1, "tid": 1, "ts": 3},
    )

    assert rows(trace, "flows", "flow", "end", "track") == [
        ("7", "start", "process 1 / thread 1"),
        ("7", "finish", "process 1 / thread 1 #2"),
    ]
    assert report(trace).skipped == {"no id": 1}


def test_tracks_are_called_by_their_names_and_stay_apart(tmp_path: Path) -> None:
    def name(what: str, pid: int, called: str, tid: int = 0) -> dict[str, object]:
        key = "labels" if what.endswith("labels") else "name"
        return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {key: called}}

    trace = open_events(
        tmp_path,
        name("process_name", 1, "python"),
        name("process_labels", 1, "CPU"),
        name("thread_name", 1, "worker", 1),
        name("thread_name", 1, "worker", 2),
        name("process_name", 7, "python"),
        name("process_name", 8, "python"),
        slice_("a", 1, 1, pid=1, tid=1),
        slice_("b", 1, 1, pid=1, tid=2),
        slice_("c", 1, 1, pid=7, tid="python 7"),
        slice_("d", 1, 1, pid=8, tid=3),
        slice_("e", 1, 1, pid=0, tid=7, cat="kernel"),
        slice_("f", 1, 1, pid="Spans", tid="PyTorch Profiler"),
    )

    assert dict(rows(trace, "spans", "name", "track")) == {
        "a": "python CPU / worker 1",
        "b": "python CPU / worker 2",
        "c": "python 7",
        "d": "python 8 / thread 3",
        "e": "GPU 0 / stream 7",
        "f": "Spans / PyTorch Profiler",
    }


def test_a_launch_and_its_kernel_share_a_correlation(tmp_path: Path) -> None:
    launch = {"External id": 5, "correlation": 90}
    trace = open_events(
        tmp_path,
        slice_("execute_context_1(8)_generation_0(0)", 0, 20, cat="user_annotation"),
        slice_("cudaLaunchKernel", 1, 2, cat="cuda_runtime", args=launch),
        slice_("gemm", 50, 9, cat="kernel", pid=0, tid=7, args={"correlation": 90}),
        slice_("aten::mm", 3, 1, cat="cpu_op", args={"External id": 90}),
    )

    assert set(rows(trace, "spans", "name", "correlation", "step")) == {
        ("execute_context_1(8)_generation_0(0)", None, 1),
        ("cudaLaunchKernel", 90, 1),
        ("gemm", 90, 1),
        ("aten::mm", None, 1),
    }


def test_fields_beside_the_events_are_read_wherever_they_stand(tmp_path: Path) -> None:
    content = (
        b'\xef\xbb\xbf {"distributedInfo":{"rank":5}, "nested":{"traceEvents":[]},\n'
        b'"traceEvents" : [ ], "baseTimeNanoseconds": 12, "traceName": "x"}'
    )

    manifest = open_bytes(tmp_path, content).manifest

    assert manifest.ranks == (5,)
    assert manifest.clock.epoch_ns == 12
    assert manifest.config["traceName"] == "x"


def test_the_rank_may_be_in_the_name_of_the_file(tmp_path: Path) -> None:
    trace = open_bytes(tmp_path, json.dumps([slice_("a", 1, 1)]).encode(), "rank_3.json")

    assert rows(trace, "spans", "rank") == [3]


def test_progress_tells_how_much_of_the_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "trace.json.gz"
    file.write_bytes(gzip.compress(json.dumps([slice_("a", 1, 1)]).encode()))
    told: list[tuple[str, int, int | None]] = []

    Trace.open(file, progress=lambda *said: told.append(said))

    assert told[-1] == ("reading", file.stat().st_size, file.stat().st_size)


@slow
def test_the_first_of_many_spans_can_be_asked_for(tmp_path: Path) -> None:
    event = b'{"ph":"X","name":"a","pid":1,"tid":1,"ts":%d,"dur":1,"args":{"a":%d}}'
    events = b",".join(event % (at, at) for at in range(400_000))

    trace = open_bytes(tmp_path, b'{"traceEvents":[' + events + b"]}")

    assert rows(trace, "spans", "args")[:2] == ['{"a":0}', '{"a":1}']
    assert trace.spans.head(2).collect()["args"].to_list() == ['{"a":0}', '{"a":1}']
    assert trace.sql("select args from spans limit 1 offset 9")["args"].item() == '{"a":9}'


@slow
@pytest.mark.parametrize("id2", [{}, "x", []])
def test_what_tells_no_id_in_either_field_is_counted(tmp_path: Path, id2: object) -> None:
    halves = ({"ph": ph, "name": "io", "pid": 1, "ts": ts, "id2": id2} for ph, ts in ("b1", "e5"))

    trace = open_events(tmp_path, slice_("a", 1, 2), *halves)

    assert rows(trace, "spans", "name") == ["a"]
    assert trace.manifest.report
    assert trace.manifest.report.skipped == {"no id": 2}
