"""Profiles rewritten: what must stay as it was, and what must be said."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs
import pytest

from stepscope.ingest.errors import UnknownFormat
from stepscope.ingest.readers.event_stream import BEHIND
from stepscope.ingest.trace import Trace
from tests.metamorphic.contents import (
    Rows,
    contents_of,
    counts_of,
    findings_of,
    report_of,
    rows_of,
)
from tests.metamorphic.documents import Document, each_time, exact, number, text_of, written
from tests.metamorphic.profile_rewritings import SAME, begins_and_ends, plain
from tests.metamorphic.profiles import names, profile, write

pytestmark = pytest.mark.parametrize("name", names())
FLOW_ENDS = {"s": "bind_id with flow_out", "f": "bind_id with flow_in"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("profiles")


@cache
def told(folder: Path, name: str) -> tuple[Any, ...]:
    """What is read of a profile as it is: tables, counts, findings."""
    trace = Trace.open(write(folder, plain(profile(name)), f"{name}.json"))
    return contents_of(trace), counts_of(trace), findings_of(trace)


def opened(folder: Path, content: bytes) -> Trace:
    return Trace.open(write(folder, content))


# -- what must stay ---------------------------------------------------------------------------


@pytest.mark.parametrize("rewriting", SAME, ids=lambda each: each.__name__)
def test_a_profile_written_otherwise_is_the_same(
    folder: Path, tmp_path: Path, name: str, rewriting: Callable[[Document], bytes]
) -> None:
    trace = opened(tmp_path, rewriting(profile(name)))

    tables, (read, *others), findings = told(folder, name)
    assert contents_of(trace) == tables
    assert findings_of(trace) == findings
    now = report_of(trace).read
    if rewriting is begins_and_ends:
        now, read = (_slices(counts) for counts in (now, read))
    assert (now, *counts_of(trace)[1:]) == (read, *others)


def _slices(read: dict[str, int]) -> dict[str, int]:
    """Begins counted as slices, and ends not."""
    counts = Counter(read)
    assert counts["B"] == counts["E"]
    return {**counts, "X": counts["X"] + counts["B"], "B": 0, "E": 0}


def test_an_array_of_events_holds_them_all_and_says_nothing_of_who_wrote_it(
    folder: Path, tmp_path: Path, name: str
) -> None:
    trace = opened(tmp_path, text_of(profile(name).events).encode())

    tables, counts, _ = told(folder, name)
    assert (contents_of(trace), counts_of(trace)) == (tables, counts)
    assert (trace.manifest.producer, trace.manifest.config) == ("Chrome JSON", {})


# -- what must change -------------------------------------------------------------------------


def test_later_by_a_constant_is_later_by_it_everywhere(
    folder: Path, tmp_path: Path, name: str
) -> None:
    document = profile(name)
    for event in document.events:
        if "ts" in event:
            event["ts"] = number(f"{exact(event['ts']) + 1_000_000_000:f}")

    trace = opened(tmp_path, plain(document))

    tables, counts, findings = told(folder, name)
    assert contents_of(moved(trace, -1_000_000_000_000)) == tables
    assert counts_of(trace) == counts
    assert findings_of(trace)["counts"] == findings["counts"]


def moved(trace: Trace, by_ns: int) -> Trace:
    frames = {name: trace.table(name) for name in trace.manifest.tables}
    times = cs.ends_with("ts_ns") + by_ns
    shifted = {name: frame.with_columns(times) for name, frame in frames.items()}
    return Trace(shifted, trace.manifest, "moved")


@pytest.mark.parametrize("share", [0.1, 0.45, 0.8, 0.999])
@pytest.mark.parametrize("is_array", [False, True])
def test_of_a_file_that_was_cut_all_whole_events_are_kept_and_the_rest_is_said(
    tmp_path: Path, name: str, share: float, is_array: bool
) -> None:
    document = profile(name)
    content = (text_of(document.events) if is_array else text_of(document.top())).encode()
    begin = content.index(text_of(document.events[0]).encode()) + 1_000
    before = content[: begin + int((len(content) - begin) * share)]
    kept = Document(document.events[: _num_whole(before, document)], document.before)

    trace = opened(tmp_path, before)

    expected = Trace.open(write(tmp_path, plain(kept), "whole.json"))
    assert contents_of(trace) == contents_of(expected)
    assert report_of(trace).read == report_of(expected).read
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


def _doubled(rows: Rows) -> Rows:
    return Counter({row: 2 * num for row, num in rows.items()})


def test_tracks_with_other_numbers_are_as_many_with_the_same_in_each(
    folder: Path, tmp_path: Path, name: str
) -> None:
    document = profile(name)
    for event in document.events:
        for key in ("pid", "tid"):
            if key in event:
                event[key] = f"number {written(event[key])}"

    trace = opened(tmp_path, plain(document))

    tables, counts, _ = told(folder, name)
    assert _by_track(rows_of(trace, "spans")) == _by_track(tables["spans"])
    assert counts_of(trace) == counts


def _by_track(rows: Rows) -> Counter[frozenset[Any]]:
    """What is on each track, whatever it is called."""
    tracks: dict[Any, Counter[Any]] = defaultdict(Counter)
    for row, num in rows.items():
        *said, track, ts_ns = row
        tracks[track][*said, ts_ns] += num
    return Counter(frozenset(there.items()) for there in tracks.values())


def test_without_names_tracks_are_called_by_their_numbers_and_hold_the_same(
    folder: Path, tmp_path: Path, name: str
) -> None:
    document = profile(name)
    document.events[:] = [event for event in document.events if event.get("ph") != "M"]

    trace = opened(tmp_path, plain(document))

    tables, (read, *others), _ = told(folder, name)
    assert _by_track(rows_of(trace, "spans")) == _by_track(tables["spans"])
    assert report_of(trace).read == {ph: num for ph, num in read.items() if ph != "M"}
    assert list(counts_of(trace)[1:]) == others


def test_flows_that_slices_carry_are_the_flows_of_their_own_events(
    folder: Path, tmp_path: Path, name: str
) -> None:
    document = profile(name)
    tables, (read, *_), _ = told(folder, name)
    num_carried = _carried(document)
    if not num_carried:
        pytest.skip("no slice of it begins where an arrow does")

    trace = opened(tmp_path, plain(document))

    now = Counter(report_of(trace).read)
    assert sum(now[ph] for ph in FLOW_ENDS.values()) == num_carried
    assert sum(now[ph] for ph in "stf") == sum(Counter(read)[ph] for ph in "stf") - num_carried
    assert rows_of(trace, "flows", "name", "category") == _without_names(tables["flows"])
    assert contents_of(trace)["spans"] == tables["spans"]


def _carried(document: Document) -> int:
    """Let slices that begin where an end of an arrow is carry it; gives how many they are."""
    slices = {
        (event["pid"], event["tid"], exact(event["ts"])): event
        for event in document.events
        if event.get("ph") == "X"
    }
    gone = set()
    for event in document.events:
        place = (event.get("pid"), event.get("tid"), exact(event.get("ts", 0)))
        there = slices.get(place)
        if event.get("ph") in FLOW_ENDS and there is not None and "bind_id" not in there:
            there |= {"bind_id": event["id"], f"flow_{'out' if event['ph'] == 's' else 'in'}": True}
            gone.add(id(event))
    document.events[:] = [event for event in document.events if id(event) not in gone]
    return len(gone)


def _without_names(flows: Rows) -> Rows:
    """Ends of arrows without name and category, which are the first and the fourth column."""
    found: Rows = Counter()
    for (_, end, flow, _, *rest), num in flows.items():
        found[end, flow, *rest] += num
    return found


@pytest.mark.parametrize("behind", [b"garbage", b"}", b"]", b'"', b"{}", b"\0\0"])
@pytest.mark.parametrize("is_array", [False, True])
def test_what_stands_behind_the_end_is_said_to_be_there(
    folder: Path, tmp_path: Path, name: str, behind: bytes, is_array: bool
) -> None:
    document = profile(name)
    content = (text_of(document.events) if is_array else text_of(document.top())).encode()

    trace = opened(tmp_path, content + behind)

    assert contents_of(trace) == told(folder, name)[0]
    assert BEHIND in report_of(trace).notes


def test_space_behind_the_end_and_a_comma_behind_the_last_event_are_nothing(
    folder: Path, tmp_path: Path, name: str
) -> None:
    document = profile(name)
    last = text_of(document.events[-1])

    trace = opened(
        tmp_path, plain(document).replace(f"{last}]".encode(), f"{last} , ]".encode()) + b"\n "
    )

    assert (contents_of(trace), counts_of(trace)) == told(folder, name)[:2]
    assert BEHIND not in report_of(trace).notes


def test_one_profile_behind_the_other_is_read_too_and_said_to_be_there(
    folder: Path, tmp_path: Path, name: str
) -> None:
    content = plain(profile(name))

    trace = opened(tmp_path, content + b"\n" + content)

    read = told(folder, name)[1][0]
    assert report_of(trace).read == {ph: 2 * num for ph, num in read.items()}
    assert BEHIND in report_of(trace).notes


@pytest.mark.parametrize("written_as", ["NaN", '"?"', "{", "1e99", "-"])
def test_one_event_that_is_none_costs_one_and_is_counted(
    tmp_path: Path, name: str, written_as: str
) -> None:
    document = profile(name)
    place = next(at for at, event in enumerate(document.events) if event.get("ph") == "X")
    less = Document([*document.events[:place], *document.events[place + 1 :]], document.before)
    expected = opened(tmp_path, plain(less))
    document.events[place]["ts"] = number(written_as)

    trace = Trace.open(write(tmp_path, plain(document), "broken.json"))

    assert rows_of(trace, "spans", "step") == rows_of(expected, "spans", "step")
    assert sum(report_of(trace).skipped.values()) == 1


def test_utf16_is_refused_with_a_line_that_says_how_to_convert_it(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(UnknownFormat, match="iconv"):
        opened(tmp_path, plain(profile(name)).decode().encode("utf-16"))


def test_times_twice_as_long_are_so_everywhere(tmp_path: Path, name: str) -> None:
    trace = opened(tmp_path, plain(each_time(profile(name), lambda us: number(f"{2 * us:f}"))))

    once = Trace.open(write(tmp_path, plain(profile(name)), "once.json"))
    for column in ("ts_ns", "dur_ns"):
        times = once.spans.select(pl.col(column) * 2).collect().to_series()
        assert trace.spans.select(column).collect().to_series().equals(times)
