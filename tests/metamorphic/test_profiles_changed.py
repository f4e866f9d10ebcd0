"""Profiles changed: what must change in what is read and said of them, and nothing besides."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
import polars.selectors as cs
import pytest

from stepscope.ingest.errors import UnknownFormat
from stepscope.ingest.readers.chrome.split import BEHIND
from stepscope.ingest.trace import Trace
from tests.metamorphic.contents import (
    Rows,
    blamed,
    blamed_sums,
    contents_of,
    counts_of,
    findings_of,
    report_of,
    rows_of,
)
from tests.metamorphic.documents import Document, exact, number, stretched, text_of
from tests.metamorphic.profile_rewritings import plain
from tests.metamorphic.profiles import QUICK, names, opened, profile, told, write
from tests.tiers import sampled, slow

pytestmark = pytest.mark.parametrize("name", sampled(names(), QUICK))


def test_later_by_a_constant_is_later_by_it_everywhere(
    folder: Path, tmp_path: Path, name: str
) -> None:
    document = profile(name)
    for event in document.events:
        if "ts" in event:
            event["ts"] = number(f"{exact(event['ts']) + 1_000_000_000:f}")

    trace = opened(tmp_path, plain(document))

    first = told(folder, name)
    assert contents_of(moved(trace, -1_000_000_000_000)) == first.tables
    assert counts_of(trace) == first.counts
    assert findings_of(trace)["counts"] == first.findings["counts"]
    assert blamed(trace, later_ns=-1_000_000_000_000) == first.blamed


def moved(trace: Trace, by_ns: int) -> Trace:
    frames = {name: trace.table(name) for name in trace.manifest.tables}
    times = cs.ends_with("ts_ns") + by_ns
    shifted = {name: frame.with_columns(times) for name, frame in frames.items()}
    return Trace(shifted, trace.manifest, "moved")


@slow
@pytest.mark.parametrize("is_array", [False, True])
@pytest.mark.parametrize("share", sampled([0.1, 0.45, 0.8, 0.999], [0.45, 0.999]))
def test_of_a_file_that_was_cut_all_whole_events_are_kept_and_the_rest_is_said(
    tmp_path: Path, name: str, share: float, is_array: bool
) -> None:
    document = profile(name)
    content = (text_of(document.events) if is_array else text_of(document.top())).encode()
    begin = content.index(text_of(document.events[0]).encode()) + 1_000
    before = content[: begin + int((len(content) - begin) * share)]
    whole = Document(document.events[: _num_whole(before, document)], document.before)

    trace = opened(tmp_path, before)

    expected = Trace.open(write(tmp_path, plain(whole), "whole.json"))
    assert contents_of(trace) == contents_of(expected)
    assert report_of(trace).read == report_of(expected).read
    assert blamed(trace) == blamed(expected)
    if is_array and before.rstrip().endswith((b"}", b",")):
        assert any("no closing bracket" in note for note in report_of(trace).notes)
        return
    assert trace.manifest.closed is False
    assert any("cut off" in note for note in report_of(trace).notes)
    assert findings_of(trace)["counts"]["TRC001"] == 1


def _num_whole(content: bytes, document: Document) -> int:
    """How many events are whole before the end of what is left, by the length of each."""
    left = len(content) - content.index(b"[", content.find(b'"traceEvents"') + 1) - 1
    for at, event in enumerate(document.events):
        left -= len(text_of(event))
        if left < 0:
            return at
        left -= len(", ")
    return len(document.events)


@slow
def test_events_that_are_there_twice_are_read_twice(tmp_path: Path, name: str) -> None:
    document = profile(name)
    plain_only = [event for event in document.events if event["ph"] in "XCMi"]
    once = opened(tmp_path, plain(Document(plain_only, document.before)))
    twice = opened(
        tmp_path, plain(Document([each for event in plain_only for each in (event, event)]))
    )

    assert report_of(twice).read == {ph: 2 * num for ph, num in report_of(once).read.items()}
    assert _doubled(rows_of(once, "spans", "step", "parent", "span")) == rows_of(
        twice, "spans", "step", "parent", "span"
    )
    if once.has("steps"):
        assert rows_of(once, "steps") == rows_of(twice, "steps")
    assert blamed(twice) == blamed(once)


def _doubled(rows: Rows) -> Rows:
    return Counter({row: 2 * num for row, num in rows.items()})


def test_one_profile_behind_the_other_is_read_too_and_said_to_be_there(
    folder: Path, tmp_path: Path, name: str
) -> None:
    content = plain(profile(name))

    trace = opened(tmp_path, content + b"\n" + content)

    read = told(folder, name).counts[0]
    assert blamed_sums(trace) == told(folder, name).sums
    assert report_of(trace).read == {ph: 2 * num for ph, num in read.items()}
    assert BEHIND in report_of(trace).notes


@slow
def test_one_event_that_is_none_costs_one_and_is_counted(tmp_path: Path, name: str) -> None:
    document = profile(name)
    place = next(at for at, event in enumerate(document.events) if event.get("ph") == "X")
    less = Document([*document.events[:place], *document.events[place + 1 :]], document.before)
    expected = opened(tmp_path, plain(less))
    for written_as in ("NaN", '"?"', "{", "1e99", "-"):
        document.events[place]["ts"] = number(written_as)

        trace = Trace.open(write(tmp_path, plain(document), "broken.json"))

        assert rows_of(trace, "spans", "step") == rows_of(expected, "spans", "step"), written_as
        assert blamed(trace) == blamed(expected), written_as
        assert sum(report_of(trace).skipped.values()) == 1, written_as


def test_utf16_is_refused_with_a_line_that_says_how_to_convert_it(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(UnknownFormat, match="iconv"):
        opened(tmp_path, plain(profile(name)).decode().encode("utf-16"))


@slow
def test_times_twice_as_long_are_so_everywhere(tmp_path: Path, name: str) -> None:
    trace = opened(tmp_path, plain(stretched(profile(name))))

    once = Trace.open(write(tmp_path, plain(profile(name)), "once.json"))
    twice = Counter(
        (*row[:2], None, *(2 * ns for ns in row[3:])) for row in blamed_sums(once).elements()
    )
    began = once.spans.select(pl.col("ts_ns").min()).collect().item()
    assert rows_of_times(trace) == [
        (2 * ts_ns - began, None if dur_ns is None else 2 * dur_ns)
        for ts_ns, dur_ns in rows_of_times(once)
    ]
    assert blamed_sums(trace) == twice


def rows_of_times(trace: Trace) -> list[tuple[int, int | None]]:
    return trace.spans.select("ts_ns", "dur_ns").collect().rows()
