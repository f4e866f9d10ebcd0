"""Files that are cut off, torn, or made to hurt."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stepscope.ingest.errors import LimitExceeded, TruncatedTrace
from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.chrome import decode, split
from stepscope.ingest.readers.chrome.frames import Events
from stepscope.ingest.readers.chrome.reader import ChromeReader
from stepscope.ingest.readers.chrome.split import EventStream
from stepscope.ingest.readers.encodings import buffers
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import num_accounted, open_bytes, rows, slice_
from tests.ingest.readers.hostile import use_or_refuse
from tests.looped import looped
from tests.tiers import examples, slow

EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
    slice_("execute_context_1(8)_generation_2(2)", 1, 50.125, cat="user_annotation"),
    slice_('quoted "}, {" \\', 2, 3, args={"list": [{"a": 1}, {"b": [2]}], "t": "}, {"}),
    {"ph": "C", "name": "queue", "pid": 1, "ts": 4, "args": {"value": 3}},
    {"ph": "s", "id": 1, "name": "f", "cat": "f", "pid": 1, "tid": 1, "ts": 5},
    {"ph": "B", "name": "open", "pid": 1, "tid": 2, "ts": 6},
]
OBJECT = {"schemaVersion": 1, "traceEvents": EVENTS, "distributedInfo": {"rank": 0}}
LAYOUTS = {
    "spaced": json.dumps(OBJECT).encode(),
    "compact": json.dumps(OBJECT, separators=(",", ":")).encode(),
    "pretty": json.dumps(OBJECT, indent=1).encode(),
    "array": json.dumps(EVENTS).encode(),
}


class InBlocks:
    """A content that is read so many bytes at a time."""

    damage: str | None = None

    def __init__(self, content: bytes, size: int = 1 << 30) -> None:
        self.left = content
        self.size = size

    def readinto(self, buffer: memoryview) -> int:
        block = self.left[: min(self.size, len(buffer))]
        buffer[: len(block)] = block
        self.left = self.left[len(block) :]
        return len(block)


def num_events(content: bytes) -> int:
    return sum(EventStream(InBlocks(content), "file", len))


def num_whole(content: bytes) -> int:
    """How many events of `EVENTS` end within a prefix of a layout, by a plain decoder."""
    text = content.decode()
    start = 1 if text.startswith("[") else text.index("[", text.find('"traceEvents"')) + 1
    decoder = json.JSONDecoder()
    num = 0
    while num < len(EVENTS):
        start = re.compile(r"[\s,]*").match(text, start).end()  # type: ignore[union-attr]  # it matches nothing too
        try:
            _, start = decoder.raw_decode(text, start)
        except ValueError:
            break
        num += 1
    return num


def lengths(layout: str) -> range:
    """All lengths to which a layout can be cut without losing where its events begin."""
    content = LAYOUTS[layout]
    first = content.index(b"[") + 1 if layout == "array" else content.index(b'"traceEvents"') + 17
    return range(first, len(content))


def check_cut(layout: str, at: Iterable[int]) -> None:
    content = LAYOUTS[layout]
    for length in at:
        assert num_events(content[:length]) == num_whole(content[:length]), length


@slow
@looped("layout", ["spaced", "array"])
def test_cut_near_the_end_of_an_event_or_at_some_byte_all_whole_events_are_kept(
    layout: str,
) -> None:
    content = LAYOUTS[layout]
    whole = {length: num_whole(content[:length]) for length in lengths(layout)}
    ends = [length for length in lengths(layout)[1:] if whole[length] > whole[length - 1]]
    near = {end + by for end in ends for by in (-1, 0, 1, 2)}

    assert len(ends) == len(EVENTS)
    check_cut(layout, sorted({*lengths(layout)[::9], *near} & {*lengths(layout)}))


@slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_cut_anywhere_all_whole_events_are_kept(layout: str) -> None:
    check_cut(layout, lengths(layout))


@slow
@pytest.mark.parametrize("layout", ["spaced", "compact", "pretty"])
def test_a_cut_off_file_says_so(tmp_path: Path, layout: str) -> None:
    content = LAYOUTS[layout]

    trace = open_bytes(tmp_path, content[: content.index(b'"queue"')])

    report = trace.manifest.report
    assert report is not None
    assert report.skipped == {"cut off by the end of the file": 1}
    assert any(note.startswith("cut off after ") for note in report.notes)
    assert not trace.manifest.closed
    assert trace.manifest.tables["spans"] == "partial"
    assert trace.num_rows("spans") == 2


def test_an_array_needs_no_closing_bracket(tmp_path: Path) -> None:
    trace = open_bytes(tmp_path, LAYOUTS["array"][:-1])

    assert trace.manifest.closed
    assert num_accounted(trace) == len(EVENTS)


@pytest.mark.parametrize("content", [LAYOUTS["spaced"][:30], LAYOUTS["spaced"][:60]])
def test_a_file_cut_off_before_its_first_event_is_an_error(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(TruncatedTrace, match="cut off after"):
        open_bytes(tmp_path, content)


@slow
def test_a_gzip_file_cut_anywhere_gives_what_it_holds(tmp_path: Path) -> None:
    events = [slice_(f"event {number}", number, 1) for number in range(500)]
    packed = gzip.compress(json.dumps(events).encode())
    counts = []

    for length in range(200, len(packed), 211):
        trace = open_bytes(tmp_path, packed[:length])
        assert not trace.manifest.closed
        counts.append(trace.num_rows("spans"))

    assert counts == sorted(counts)
    assert counts[-1] > 400


def test_a_damaged_gzip_file_keeps_what_comes_before_the_damage(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(LAYOUTS["spaced"]))
    packed[-8:-4] = b"\0\0\0\0"

    trace = open_bytes(tmp_path, bytes(packed))

    assert num_accounted(trace) == len(EVENTS)
    assert trace.manifest.report is not None
    assert any("gzip data is damaged" in note for note in trace.manifest.report.notes)


def test_gzip_members_follow_each_other(tmp_path: Path) -> None:
    content = LAYOUTS["spaced"]

    trace = open_bytes(tmp_path, gzip.compress(content[:99]) + gzip.compress(content[99:]) + b"\0")

    assert trace.manifest.closed
    assert num_accounted(trace) == len(EVENTS)


def test_events_after_a_torn_one_are_kept(tmp_path: Path) -> None:
    events = [json.dumps(slice_(f"event {number}", number, 1)) for number in range(9)]
    events[4] = events[4].replace('"event 4"', '"event 4')

    trace = open_bytes(tmp_path, ('{"traceEvents":[' + ",".join(events) + "]}").encode())

    kept = set(rows(trace, "spans", "name"))
    assert kept >= {f"event {number}" for number in range(9) if number not in (4, 5)}
    assert trace.manifest.report is not None
    assert sum(trace.manifest.report.skipped.values()) >= 1


def test_a_stray_bracket_does_not_end_the_events() -> None:
    for stray in (b"]", b"}", b"}}", b"]]"):
        closed = b'"args": {"value": 3}}'
        content = LAYOUTS["spaced"].replace(closed, closed + stray)

        assert num_events(content) == len(EVENTS), stray


@given(st.sampled_from(sorted(LAYOUTS)), st.integers(40, 900), st.booleans())
def test_block_borders_make_no_difference(layout: str, size: int, is_compiled: bool) -> None:
    at_once = pl.concat(EventStream(InBlocks(LAYOUTS[layout]), "file", Events.whole))

    batches = EventStream(InBlocks(LAYOUTS[layout], size), "file", Events.whole)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split, "WINDOW_BYTES", 1)
        patch.setattr(decode, "IS_COMPILED", is_compiled and decode.IS_COMPILED)
        assert pl.concat(batches).equals(at_once)
    assert not batches.reader.skipped


@given(st.integers(40, 900), st.lists(st.booleans(), min_size=1, max_size=60))
def test_what_must_be_read_one_by_one_does_not_change_what_is_read_beside_it(
    size: int, are_sound: list[bool]
) -> None:
    nested = {"l": [{"ph": 1}, {"ph": 2}]}
    events = [slice_(f"e{n}", n, 1 if sound else math.nan, args=nested | {"n": n})
              for n, sound in enumerate(are_sound)]  # fmt: skip
    stream = EventStream(InBlocks(json.dumps(events).encode(), size), "file", Events.whole)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split, "WINDOW_BYTES", 1)
        found = pl.concat(stream)

    assert found["name"].to_list() == [event["name"] for event in events]
    assert found["dur_ns"].to_list() == [1000 if sound else None for sound in are_sound]
    assert [json.loads(args) for args in found["args"]] == [event["args"] for event in events]
    assert stream.reader.repaired.total() == are_sound.count(False)


def test_an_event_larger_than_the_limit_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffers, "BLOCK_BYTES", 1_000)
    file = tmp_path / "huge.json"
    file.write_text(json.dumps([slice_("x" * 100_000, 1, 1)]))

    with pytest.raises(LimitExceeded, match=r"an event of more than 5,000 bytes.*--max event=N"):
        Trace.open(file, limits=Limits(event=5_000))


JUNK = (b"NaN", b"null", b"1e999", b'"\\ud800"', b"[]", b"{", b"]", b'"', b"\\", b"\0", b"\xff")


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    content = draw(st.sampled_from(sorted(LAYOUTS.values())))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = start + draw(st.integers(0, 20))
        content = content[:start] + draw(st.sampled_from((b"", *JUNK))) + content[end:]
    return gzip.compress(content) if draw(st.booleans()) else content


def open_or_refuse(folder: Path, content: bytes) -> None:
    """Open a file through the reader, sniffed or not, and use all that comes out of it."""
    file = folder / "hostile.json"
    file.write_bytes(content)
    use_or_refuse(ChromeReader(), file)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@slow
@settings(max_examples=examples(200))
@given(content=mutated())
def test_mutated_files_raise_nothing_but_our_errors(folder: Path, content: bytes) -> None:
    open_or_refuse(folder, content)


@settings(max_examples=examples(200))
@given(content=st.binary(max_size=300))
@example(content=b'{"traceEvents":[' + b"[" * 200_000)
@example(content=b'{"traceEvents":[' + b'{"a":' * 100_000)
@example(content=b"[" + b"}{" * 50_000)
@example(content=b"[" + b'},{"' * 50_000)
@example(content=b'{"traceEvents":[' * 5_000)
@example(content=b'{"schemaVersion":1,"a":[' + b'{"traceEvents":[]},' * 20_000)
@example(content=b"[" + b"\\" * 100_001)
def test_arbitrary_bytes_raise_nothing_but_our_errors(folder: Path, content: bytes) -> None:
    open_or_refuse(folder, content)


def test_names_that_are_deep_or_many_stay_text(folder: Path) -> None:
    nested: list[Any] = []
    for _ in range(400):
        nested = [nested]
    event = {"ph": "X", "name": nested, "cat": {"a": 1}, "ts": 1, "dur": 1, "pid": [1], "tid": {}}

    trace = open_bytes(folder, json.dumps([event]).encode())

    assert rows(trace, "spans", "track") == ["[1] / {}"]
