"""XPlane: what each event says, its steps and launches, and what nobody would write."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from stepscope.ingest.errors import TraceError
from stepscope.ingest.limits import Limits
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import open_bytes, rows
from tests.ingest.log_files import report_of
from tests.ingest.readers.xplane.files import NS, Plane, field, fields_of, space, two_steps, varint
from tests.ingest.real_files import OWN_PROFILES, profile, shared_file
from tests.looped import looped
from tests.tiers import slow

STEP_COLUMNS = ("step", "ts_ns", "cpu_dur_ns", "gpu_ts_ns", "gpu_busy_ns", "dur_ns")


def test_step_markers_of_the_host_become_steps_with_what_they_launched(tmp_path: Path) -> None:
    """By hand: the first launches a kernel of 50 ns and a copy of 10, the second one of 60."""
    trace = open_bytes(tmp_path, two_steps())

    assert rows(trace, "steps", *STEP_COLUMNS) == [
        (7, 1_000, 100, 1_040, 60, 110),
        (8, 1_200, 60, 1_230, 60, 90),
    ]
    assert rows(trace, "steps", "kind", "tag") == [
        (None, "train#step_num=7#"), (None, "train#step_num=8#"),
    ]  # fmt: skip


def test_without_markers_there_are_spans_and_no_steps(tmp_path: Path) -> None:
    trace = open_bytes(tmp_path, two_steps(marked=False))

    assert not trace.has("steps")
    assert trace.num_rows("spans") == 8


def test_spans_have_tracks_categories_arguments_and_correlations(tmp_path: Path) -> None:
    told = rows(open_bytes(tmp_path, two_steps()), "spans", "track", "name", "category", "args")

    assert told[0] == ("/host:CPU / python", "train", None, '{"step_num": 7}')
    assert told[3][:3] == ("/host:CPU / launcher", "cuMemcpyAsync", "cuda_driver")
    assert told[5][:3] == ("/device:GPU:0 / Stream #3(Kernel)", "gemm", "kernel")
    assert json.loads(told[5][3])["hlo_op"] == "dot.1"
    assert told[7][1:3] == ("MemcpyH2D", "gpu_memcpy")


def test_what_is_passed_on_and_given_are_the_ends_of_a_flow(tmp_path: Path) -> None:
    told = rows(open_bytes(tmp_path, two_steps()), "flows", "flow", "end", "ts_ns", "track")

    assert told == [
        ("2/4", "start", 1_010, "/host:CPU / launcher"),
        ("2/4", "finish", 1_040, "/device:GPU:0 / Stream #3(Kernel)"),
    ]


def tpu(*, since_ns: int = 0) -> Plane:
    """Two steps of a TPU, which has a line for them and one for XLA's operations."""
    plane = Plane("/device:TPU:0")
    plane.line(
        "Steps", plane.event("3", 0, 100 * NS), plane.event("4", 100 * NS, 90 * NS),
        since_ns=since_ns,
    )  # fmt: skip
    ran = (("fusion.1", 10, 30), ("dot.2", 50, 40), ("fusion.1", 110, 70))
    operations = (plane.event(name, begin * NS, dur * NS) for name, begin, dur in ran)
    plane.line("XLA Ops", *operations, since_ns=since_ns, number=2)
    plane.line("XLA Modules", plane.event("jit_f", 5 * NS, 180 * NS), since_ns=since_ns, number=3)
    return plane


def test_a_device_s_own_line_of_steps_is_used_where_the_host_has_none(tmp_path: Path) -> None:
    trace = open_bytes(tmp_path, space(tpu()))

    assert rows(trace, "steps", "step", "ts_ns", "cpu_dur_ns", "gpu_busy_ns") == [
        (3, 0, None, 70),
        (4, 100, None, 70),
    ]


def test_steps_of_the_host_take_in_what_the_device_ran_in_its_copies_of_them(
    tmp_path: Path,
) -> None:
    host = Plane("/host:CPU")
    host.line("python", host.event("train", 0, 20 * NS, step_num=3),
              host.event("train", 30 * NS, 20 * NS, step_num=4))  # fmt: skip

    trace = open_bytes(tmp_path, space(host, tpu(since_ns=1_000)))

    assert rows(trace, "steps", "step", "ts_ns", "cpu_dur_ns", "gpu_ts_ns", "gpu_busy_ns") == [
        (3, 0, 20, 1_010, 70),
        (4, 30, 20, 1_110, 70),
    ]


def test_a_tag_of_an_engine_comes_before_a_marker(tmp_path: Path) -> None:
    host = Plane("/host:CPU")
    host.line("python", host.event("train", 0, 90 * NS, step_num=3),
              host.event("execute_context_1(64)_generation_0(0)", 10 * NS, 20 * NS))  # fmt: skip

    trace = open_bytes(tmp_path, space(host))

    assert rows(trace, "steps", "kind", "ts_ns") == [("prefill", 10)]


def test_picoseconds_are_cut_so_that_slices_nest_as_they_did(tmp_path: Path) -> None:
    plane = Plane("/host:CPU")
    plane.line("a", plane.event("outer", 1_999, 3_002), plane.event("inner", 2_500, 2_501))

    told = rows(open_bytes(tmp_path, space(plane)), "spans", "name", "ts_ns", "dur_ns", "parent")

    assert told == [("outer", 1, 4, None), ("inner", 2, 3, 0)]


# -- what nobody would write -------------------------------------------------------------------


@looped("event", [
    b"\x08\x01\x10" + b"\xff" * 11,  # a number of more than ten bytes
    field(1, 1) + field(2, 1 << 63) + field(3, 5),  # far before all time
    field(1, 1) + field(2, 5) + field(3, -5),  # a negative length
    b"\x0b\x01",  # a group
    b"\x22\x7f\x08",  # an argument longer than the event
])  # fmt: skip
def test_an_event_that_cannot_be_decoded_is_counted_and_the_others_are_kept(
    tmp_path: Path, event: bytes
) -> None:
    plane = Plane("/host:CPU")
    plane.line("a", plane.event("one", 0, 5 * NS), event, plane.event("two", 9 * NS, 5 * NS))

    trace = open_bytes(tmp_path, space(plane))

    assert rows(trace, "spans", "name") == ["one", "two"]
    assert report_of(trace).skipped == {"events that cannot be decoded": 1}


def test_an_event_that_only_says_how_often_is_counted(tmp_path: Path) -> None:
    plane = Plane("/host:CPU")
    plane.line("a", plane.event("one", 0, 5), field(1, 1) + field(5, 12))

    report = report_of(open_bytes(tmp_path, space(plane)))

    assert report.skipped == {"events that only say how often something happened": 1}


def test_a_number_in_the_place_of_a_line_is_passed_over(tmp_path: Path) -> None:
    plane = Plane("/host:CPU")
    plane.line("a", plane.event("one", 0, 5))

    trace = open_bytes(tmp_path, field(1, field(2, "/odd") + field(3, 5)) + space(plane))

    assert rows(trace, "spans", "name") == ["one"]


def test_a_name_that_is_not_in_the_file_is_not_known(tmp_path: Path) -> None:
    plane = Plane("/host:CPU")
    plane.line("a", field(1, 99) + field(3, 5 * NS))

    assert rows(open_bytes(tmp_path, space(plane)), "spans", "name", "ts_ns") == [("(no name)", 0)]


def test_times_beyond_all_are_counted(tmp_path: Path) -> None:
    plane = Plane("/host:CPU")
    plane.line("a", plane.event("one", 0, 5))
    plane.line("b", plane.event("one", 0, 5), since_ns=(1 << 62) + 1)

    trace = open_bytes(tmp_path, space(plane))

    assert report_of(trace).skipped == {"events with times beyond all": 1}
    assert report_of(trace).read == {"events of hosts": 1}


def test_bytes_that_are_no_field_are_passed_over_up_to_the_end_of_their_plane(
    tmp_path: Path,
) -> None:
    plane = Plane("/host:CPU")
    plane.line("a", plane.event("one", 0, 5 * NS))
    broken = plane.packed() + b"\x1a\xff\xff\x03" + b"rest"

    trace = open_bytes(tmp_path, field(1, broken) + field(1, plane.packed()))

    assert rows(trace, "spans", "name") == ["one", "one"]
    assert report_of(trace).notes[0].endswith("bytes that are not fields passed over")
    assert not trace.manifest.closed


def test_a_length_beyond_all_ends_it_with_a_line(tmp_path: Path) -> None:
    trace = open_bytes(tmp_path, two_steps() + b"\x0a" + varint((1 << 64) - 1) + b"abc")

    assert trace.num_rows("spans") == 8
    assert report_of(trace).notes[0] == "14 bytes that are not fields passed over"


@slow
def test_wherever_the_file_is_cut_what_is_before_is_kept_or_it_is_refused_with_a_line(
    tmp_path: Path,
) -> None:
    content = two_steps()
    numbers, refusals = [], []

    for size in range(20, len(content) - 8, 7):
        try:
            trace = open_bytes(tmp_path, content[:size])
        except TraceError as error:
            refusals.append(error.what)
            continue
        numbers.append(trace.num_rows("spans"))
        assert any("cut off after" in note for note in report_of(trace).notes)

    assert all("cut off" in refusal for refusal in refusals)
    assert numbers == sorted(numbers)
    assert numbers[-1] == 8


def test_limits_of_events_tracks_and_bytes_are_told(tmp_path: Path) -> None:
    file = tmp_path / "a.xplane.pb"
    file.write_bytes(two_steps())

    few = Trace.open(file, limits=Limits(events=3))
    tracks = Trace.open(file, limits=Limits(tracks=2))

    assert few.num_rows("spans") == 3
    assert "--max events=" in report_of(few).notes[0]
    assert len(set(rows(tracks, "spans", "track"))) == 3
    assert report_of(tracks).repaired == {
        "events of lines beyond 2 shown as one (--max tracks=N raises it)": 3
    }


def test_the_same_is_read_in_blocks_of_any_size_and_compressed(tmp_path: Path) -> None:
    plain = open_bytes(tmp_path, two_steps())

    packed = open_bytes(tmp_path, gzip.compress(two_steps()), "a.pb.gz")

    assert rows(packed, "spans", "name", "ts_ns") == rows(plain, "spans", "name", "ts_ns")


@slow
@pytest.mark.parametrize("name", ["jax_cpu", "jax_conv_mi300"])
def test_every_event_of_a_real_file_is_in_the_tables(name: str) -> None:
    file = profile(name) if name in OWN_PROFILES else shared_file(f"foreign/{name}.xplane.pb")
    content = file.read_bytes()
    content = gzip.decompress(content) if file.suffix == ".gz" else content
    expected: Counter[tuple[str, int, int]] = Counter()
    for number, plane in fields_of(content):
        parts = list(fields_of(plane)) if number == 1 else []
        entries = [dict(fields_of(value)) for key, value in parts if key == 4]
        named = {entry[1]: dict(fields_of(entry[2])) for entry in entries}
        for line in (list(fields_of(value)) for key, value in parts if key == 3):
            since = dict(line).get(3, 0)
            for event in (dict(fields_of(value)) for key, value in line if key == 4):
                begin, until = event.get(2, 0), event.get(2, 0) + event.get(3, 0)
                said = named[event[1]]
                text = (said.get(4) or said.get(2, b"")).decode()
                dur = until // NS - begin // NS
                expected[text, since + begin // NS, dur] += 1

    trace = Trace.open(file)

    assert Counter(rows(trace, "spans", "name", "ts_ns", "dur_ns")) == expected
    report = report_of(trace)
    assert sum(report.read.values()) == expected.total() > 0
    assert report.skipped == {}


def test_steps_of_jax_are_the_annotations_of_its_loop() -> None:
    trace = Trace.open(profile("jax_cpu"))

    assert rows(trace, "steps", "step", "tag") == [
        (number, f"decode#step_num={number}#") for number in range(1, 9)
    ]
    marked = trace.spans.filter(pl.col("name").str.starts_with("decode"))
    assert marked.select("ts_ns", "dur_ns").collect().rows() == rows(
        trace, "steps", "ts_ns", "cpu_dur_ns"
    )


def test_of_a_real_file_that_was_cut_off_the_events_before_the_cut_are_kept(tmp_path: Path) -> None:
    content = gzip.decompress(profile("jax_cpu").read_bytes())
    columns = ("ts_ns", "dur_ns")
    expected = Counter(rows(open_bytes(tmp_path, content), "spans", *columns))
    numbers, refusals = [], []

    for tenths in (1, 4, 7, 9):
        try:
            trace = open_bytes(tmp_path, content[: len(content) * tenths // 10])
        except TraceError as error:
            refusals.append(error.what)
            continue
        numbers.append(trace.num_rows("spans"))
        assert not Counter(rows(trace, "spans", *columns)) - expected
        assert any("cut off after" in note for note in report_of(trace).notes)

    assert all("cut off" in refusal for refusal in refusals)
    assert numbers == sorted(numbers)
    assert numbers[-1] > expected.total() // 2


@slow
def test_kernels_of_a_real_file_run_after_they_were_launched() -> None:
    trace = Trace.open(shared_file("foreign/jax_conv_mi300.xplane.pb"))

    assert trace.num_rows("spans") == 3_650
    told = rows(trace, "spans", "category", "correlation", "ts_ns")
    began = {number: ts for category, number, ts in told if category == "hip_runtime"}
    ran = [(number, ts) for category, number, ts in told if category == "kernel"]
    assert len(ran) == 235
    assert all(began[number] < ts for number, ts in ran)


@slow
@pytest.mark.parametrize("at_a_time", [1, 2, 3, 5])
def test_arguments_are_the_same_however_few_are_written_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_a_time: int
) -> None:
    content = two_steps()
    at_once = rows(open_bytes(tmp_path, content), "spans", "name", "args")

    monkeypatch.setattr("stepscope.ingest.readers.xplane.tables.AT_A_TIME", at_a_time)

    assert rows(open_bytes(tmp_path, content), "spans", "name", "args") == at_once
    assert any(args for _, args in at_once)
