"""Captured KV cache events: which blocks a prefix cache holds; whole, torn, or made to hurt."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stepscope.analyzers.check.run import check
from stepscope.analyzers.views.ownership import ownerships
from stepscope.ingest.errors import TraceError, TruncatedTrace
from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.encodings.msgpack_stream import Messages, message_end
from stepscope.ingest.readers.kv_events.reader import KvEventsReader
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import report_of
from tests.ingest.readers.hostile import use_or_refuse
from tests.looped import looped
from tests.tiers import slow

pack = msgspec.msgpack.encode
BIG = (1 << 64) - 1


def stored(*hashes: Any, medium: str | None = "GPU") -> list[Any]:
    return ["BlockStored", list(hashes), None, [1, 2, 3, 4], 4, None, medium]


def message(seq: int, *events: Any, ts: float = 10.5, rank: int | None = 0) -> bytes:
    return pack(["kv-events", seq, [ts, list(events), rank]])


MESSAGES = [
    message(0, stored(BIG, b"h" * 32), ts=10.5),
    message(1, ["BlockRemoved", [BIG], "GPU"], stored(b"h" * 32), ts=11.0),
    message(2, {"type": "BlockStored", "block_hashes": [7], "medium": "CPU"}, ts=11.5),
    message(3, ["AllBlocksCleared"], ts=12.0),
]
CAPTURE = b"".join(MESSAGES)


def open_capture(folder: Path, content: bytes) -> Trace:
    file = folder / "events.bin"
    file.write_bytes(content)
    return Trace.open(file)


def test_what_the_cache_can_find_and_no_longer_can_makes_nobody_an_owner(tmp_path: Path) -> None:
    trace = open_capture(tmp_path, CAPTURE)

    gpu, cpu = "prefix cache (GPU)", "prefix cache (CPU)"
    assert rows(trace, "allocations", "ts_ns", "id", "op", "owner") == [
        (10_500_000_000, 0, "cache", gpu),
        (10_500_000_000, 1, "cache", gpu),
        (11_000_000_000, 0, "evict", gpu),
        (11_000_000_000, 1, "cache", gpu),
        (11_500_000_000, 2, "cache", cpu),
        (12_000_000_000, 1, "evict", gpu),
        (12_000_000_000, 2, "evict", cpu),
    ]
    assert ownerships(trace).collect().is_empty()
    assert rows(trace, "counters", "name", "value") == [
        ("cached blocks", 2.0), ("cached blocks", 1.0), ("cached blocks", 2.0),
        ("cached blocks", 0.0),
    ]  # fmt: skip


def test_what_was_read_is_counted_and_marked_as_inferred(tmp_path: Path) -> None:
    trace = open_capture(tmp_path, CAPTURE)

    assert report_of(trace).read == {
        "batches of KV events": 4, "BlockStored events": 3, "BlockRemoved events": 1,
        "AllBlocksCleared events": 1,
    }  # fmt: skip
    assert trace.manifest.tables == {"allocations": "inferred", "counters": "inferred"}
    assert trace.manifest.closed


def test_a_block_is_told_with_its_hash_and_keeps_its_number_when_it_is_stored_again(
    tmp_path: Path,
) -> None:
    events = (stored(5), ["BlockRemoved", [5], "GPU"], stored(5, b"h" * 32, "h" * 99))

    trace = open_capture(tmp_path, message(0, *events))

    assert rows(trace, "allocations", "id", "block_hash") == [
        (0, "5"), (0, "5"), (0, "5"), (1, "68" * 8), (2, "h" * 64),
    ]  # fmt: skip


def test_rules_on_owners_do_not_judge_a_capture_that_tells_of_none(tmp_path: Path) -> None:
    judged = check(open_capture(tmp_path, CAPTURE)).coverage.judged

    assert not {"KVB001", "KVB002", "KVB005"} & set(judged)


def test_messages_as_they_come_from_the_socket_are_read(tmp_path: Path) -> None:
    batch = pack([10.5, [stored(1)], 3])
    frames = pack([b"kv@pod-1@model", struct.pack(">q", 8), batch])

    trace = open_capture(tmp_path, gzip.compress(frames))

    assert rows(trace, "allocations", "rank", "op") == [(3, "cache")]
    assert trace.manifest.config["sources"] == {"3": "KV events 3 kv@pod-1@model"}


def test_batches_without_topic_and_number_are_read(tmp_path: Path) -> None:
    trace = open_capture(tmp_path, pack([10.5, [stored(1)], 0]) + pack([11, [stored(2)]]))

    assert trace.num_rows("allocations") == 2


def test_gaps_in_the_numbers_and_blocks_stored_before_are_counted(tmp_path: Path) -> None:
    content = message(4, ["BlockRemoved", [1]]) + message(9, stored(1)) + message(2, stored(2))

    report = report_of(open_capture(tmp_path, content))

    assert report.skipped == {"batches that are missing by their numbers": 4}
    assert report.repaired == {"batches whose numbers repeat or start over": 1}
    assert report.inferred == {"blocks removed that were stored before the capture": 1}


def test_what_is_no_event_is_counted(tmp_path: Path) -> None:
    odd = [None, [], ["BlockMoved", [1]], ["BlockStored", 5], {"type": 3}, stored(1.5, [2])]
    content = pack(["x", 1, "no batch"]) + message(0, *odd) + pack("text")

    report = report_of(open_capture(tmp_path, message(0, stored(1)) + content))

    assert report.skipped == {
        "messages that are not a batch of events": 2,
        "events of no known kind": 5,
        "blocks whose hash is neither a number nor bytes": 2,
    }


@looped("ts", [float("nan"), float("inf"), -1.0, 1e300])
def test_a_batch_without_a_sane_time_comes_behind_the_one_before(tmp_path: Path, ts: float) -> None:
    trace = open_capture(tmp_path, message(0, stored(1)) + message(1, stored(2), ts=ts))

    assert rows(trace, "allocations", "ts_ns") == [10_500_000_000, 10_500_001_000]
    assert any("without a time" in note for note in report_of(trace).notes)


def test_cut_anywhere_all_whole_messages_are_kept() -> None:
    ends = [sum(map(len, MESSAGES[:number])) for number in range(len(MESSAGES) + 1)]

    for length in range(len(CAPTURE) + 1):
        messages = Messages([CAPTURE[:length]])
        num_whole = sum(end <= length for end in ends[1:])
        assert len(list(messages)) == num_whole
        assert messages.is_cut_off == (length not in ends)


@slow
def test_a_capture_cut_anywhere_is_read_or_refused(tmp_path: Path) -> None:
    for length in range(1, len(CAPTURE)):
        if length < len(MESSAGES[0]):
            with pytest.raises(TraceError):
                open_capture(tmp_path, CAPTURE[:length])
            continue
        trace = open_capture(tmp_path, CAPTURE[:length])
        assert trace.num_rows("allocations") >= 2


def test_a_capture_that_is_cut_off_says_so(tmp_path: Path) -> None:
    trace = open_capture(tmp_path, CAPTURE[:-1])

    assert not trace.manifest.closed
    assert report_of(trace).skipped == {"cut off by the end of the file": 1}
    assert "cut off within a message; all whole messages are kept" in report_of(trace).notes


def test_what_follows_damage_is_left_out(tmp_path: Path) -> None:
    trace = open_capture(tmp_path, MESSAGES[0] + b"\xc1" + MESSAGES[1])

    assert trace.num_rows("allocations") == 2
    note = f"not msgpack from byte {len(MESSAGES[0])} on; all before is kept"
    assert note in report_of(trace).notes


def test_a_capture_without_a_whole_batch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TruncatedTrace, match="cut off within a message"):
        open_capture(tmp_path, MESSAGES[0][:-1])


def test_what_is_before_a_message_larger_than_the_limit_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "events.bin"
    file.write_bytes(MESSAGES[0] + MESSAGES[1][:-1])

    trace = Trace.open(file, limits=Limits(message=40))

    assert trace.num_rows("allocations") == 2
    assert not trace.manifest.closed
    assert report_of(trace).notes[0] == (
        f"a message of more than 40 bytes at byte {len(MESSAGES[0])} (--max message=N raises it); "
        "all before is kept"
    )


def test_a_capture_whose_first_message_is_too_large_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "events.bin"
    file.write_bytes(MESSAGES[0][:-1])

    with pytest.raises(TraceError, match="--max message=N raises it"):
        Trace.open(file, limits=Limits(message=40))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), BIG) | st.floats() | st.binary(max_size=300)
    | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=30,
)  # fmt: skip


@slow
@given(VALUES, st.binary(max_size=9))
def test_the_end_of_any_message_is_found(value: Any, behind: bytes) -> None:
    packed = pack(value)

    assert message_end(packed + behind, 0) == len(packed)
    assert all(message_end(packed[:length], 0) is None for length in range(len(packed)))


@given(st.integers(1, 60))
def test_block_borders_make_no_difference(size: int) -> None:
    blocks = [CAPTURE[start : start + size] for start in range(0, len(CAPTURE), size)]

    assert list(Messages(blocks)) == list(Messages([CAPTURE]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


def open_or_refuse(folder: Path, content: bytes) -> None:
    """Read a file, known or not, and use all that comes out of it."""
    file = folder / "hostile.bin"
    file.write_bytes(content)
    use_or_refuse(KvEventsReader(), file)


@given(st.integers(0, len(CAPTURE) - 1), st.binary(max_size=6), st.integers(0, 6))
def test_mutated_captures_raise_nothing_but_our_errors(
    folder: Path, at: int, junk: bytes, num_removed: int
) -> None:
    open_or_refuse(folder, CAPTURE[:at] + junk + CAPTURE[at + num_removed :])


@settings(max_examples=100)
@given(st.lists(VALUES.map(pack), max_size=4).map(b"".join) | st.binary(max_size=200))
@example(b"\x91" * 200_000)
@example(b"\x93\xa0\x00" + b"\x91" * 5_000 + b"\x00")
@example(b"\xdd\xff\xff\xff\xff" * 100)
@example(b"\xc6\xff\xff\xff\xff")
@example(message(0, ["BlockStored", list(range(5_000))], *[["AllBlocksCleared"]] * 5_000))
@example(pack(["t", -1, b""]))
@example(pack(["t", 1 << 63, [1e10, [], 1 << 40]]))
@example(pack(["\u2028" * 9_000, b"\xff" * 90, [1.0, [stored("text")], -4]]))
def test_arbitrary_messages_raise_nothing_but_our_errors(folder: Path, content: bytes) -> None:
    open_or_refuse(folder, content)
