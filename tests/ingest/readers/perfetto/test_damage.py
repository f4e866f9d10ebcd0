"""Perfetto's files that are cut off, damaged, compressed or too large."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.errors import TraceError
from stepscope.ingest.limits import Limits
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.perfetto_files import event, open_packets, pack
from tests.ingest.readers.perfetto.test_reader import NAMED, SLICE, report_of
from tests.ingest.zstd_frames import framed
from tests.looped import looped
from tests.tiers import slow


@pytest.mark.parametrize("kind", ["compressed_packets", "zstd_compressed_packets"])
def test_compressed_packets_are_read_within_their_limit(tmp_path: Path, kind: str) -> None:
    compress = zlib.compress if kind == "compressed_packets" else framed
    bomb = compress(pack(*[event(ts, 3, "x" * 1000) for ts in range(3000)]))

    whole = open_packets(tmp_path, NAMED, {kind: compress(pack(*SLICE))}, {kind: b"damaged"})
    cut = open_packets(tmp_path, {kind: bomb}, limits=Limits(ratio=5))

    assert rows(whole, "spans", "name", "dur_ns") == [("a", 4)]
    assert report_of(whole).skipped == {"damaged compressed packets": 1}
    assert 0 < cut.num_rows("spans") < 3000
    (skipped,) = report_of(cut).skipped
    assert "--max ratio=N raises it" in skipped


@slow
def test_a_file_cut_anywhere_keeps_its_whole_packets(tmp_path: Path) -> None:
    packets = [NAMED, *SLICE, event(20, 3, "b", debug_annotations=[{"name": "k", "int_value": 1}])]
    content = pack(*packets)
    borders = [len(pack(*packets[:num])) for num in range(len(packets) + 1)]
    file = tmp_path / "cut.pftrace"

    for length in range(borders[2], len(content)):
        file.write_bytes(content[:length])
        num_packets = sum(length >= border for border in borders) - 1
        trace = Trace.open(file)
        assert sum(report_of(trace).read.values()) == num_packets
        assert trace.manifest.closed == (length in borders)


def test_a_file_cut_before_its_first_event_says_so(tmp_path: Path) -> None:
    file = tmp_path / "cut.pftrace"
    file.write_bytes(pack(event(1, 3, "a" * 200))[:-5])

    with pytest.raises(TraceError, match="before the first whole event"):
        Trace.open(file)


def test_packets_behind_damaged_ones_are_found_again(tmp_path: Path) -> None:
    packets = [event(ts, 3, f"event {ts}") for ts in range(50)]
    content = bytearray(pack(NAMED, *packets))
    broken = len(pack(NAMED, *packets[:20]))
    content[broken + 1] = 0xFF  # its length

    file = tmp_path / "damaged.pftrace"
    file.write_bytes(content + b"\xff" * 7 + pack(*packets))
    trace = Trace.open(file)

    assert trace.num_rows("spans") >= 98
    assert any("not packets passed over" in note for note in report_of(trace).notes)


@looped("tail", [b"\x09", b"\x0d\x01", b"\x0a", b"\x0a\xff", b"\x08\xff", b"\x00"])
def test_a_file_that_ends_in_part_of_a_field_is_read(tmp_path: Path, tail: bytes) -> None:
    file = tmp_path / "damaged.pftrace"
    file.write_bytes(pack(NAMED, *SLICE) + tail)

    trace = Trace.open(file)

    assert rows(trace, "spans", "name") == ["a"]
    assert report_of(trace).notes


def test_a_length_without_end_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "damaged.pftrace"
    file.write_bytes(pack(NAMED, *SLICE) + b"\x0a" + b"\xff" * 60 + pack(event(30, 3, "b")))

    assert rows(Trace.open(file), "spans", "name") == ["a", "b"]


def test_a_packet_that_is_no_message_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "damaged.pftrace"
    file.write_bytes(pack(NAMED, *SLICE) + b"\x0a\x03\x5a\x7f\x01" + pack(event(30, 3, "b")))

    trace = Trace.open(file)

    assert rows(trace, "spans", "name") == ["a", "b"]
    assert report_of(trace).skipped == {"packets that cannot be decoded": 1}


def test_limits_cut_what_is_too_much_and_say_so(tmp_path: Path) -> None:
    deep: dict[str, Any] = {"name": "a", "int_value": 1}
    for _ in range(20):
        deep = {"name": "a", "dict_entries": [deep]}
    long = {"name": "x", "string_value": "y" * 2000}
    packets = [
        event(1, 3, "n" * 1000), event(2, 3, "b", debug_annotations=[long]),
        event(3, 3, "c", debug_annotations=[deep]),
        *(event(9, 3, "d", track_uuid=number) for number in range(2, 9)),
    ]  # fmt: skip

    trace = open_packets(tmp_path, *packets, limits=Limits(text=1000, depth=10, tracks=4))

    assert {"n" * 250, "b", "c", "d"} == set(rows(trace, "spans", "name"))
    assert set(rows(trace, "spans", "args")) == {None}
    assert len(set(rows(trace, "spans", "track"))) == 5
    repaired = report_of(trace).repaired
    assert [num for what, num in repaired.items() if "raises it" in what] == [2, 1, 4]


def test_what_is_read_before_the_limit_of_events_is_kept(tmp_path: Path) -> None:
    packets = [event(ts, 3, "a") for ts in range(100)]

    trace = open_packets(tmp_path, *packets, limits=Limits(events=50))

    assert trace.num_rows("spans") >= 50
    assert not trace.manifest.closed
    assert any("--max events=N raises it" in note for note in report_of(trace).notes)


def test_a_packet_larger_than_the_limit_is_passed_over(tmp_path: Path) -> None:
    large = event(1, 3, "x" * 5000)

    trace = open_packets(tmp_path, NAMED, large, *SLICE, limits=Limits(event=1000))

    assert rows(trace, "spans", "name") == ["a"]
    (skipped,) = report_of(trace).skipped
    assert "--max event=N raises it" in skipped
