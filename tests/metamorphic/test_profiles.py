"""Profiles rewritten so that they say the same: what is read and said of them must not change."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.readers.chrome.split import BEHIND
from tests.metamorphic.contents import (
    Rows,
    blamed,
    contents_of,
    counts_of,
    findings_of,
    report_of,
    rows_of,
)
from tests.metamorphic.documents import Document, exact, text_of, written
from tests.metamorphic.profile_rewritings import SAME, begins_and_ends, plain
from tests.metamorphic.profiles import QUICK, names, opened, profile, told
from tests.tiers import sampled, slow

pytestmark = pytest.mark.parametrize("name", sampled(names(), QUICK))
FLOW_ENDS = {"s": "bind_id with flow_out", "f": "bind_id with flow_in"}


@slow
def test_a_profile_written_otherwise_is_the_same(folder: Path, tmp_path: Path, name: str) -> None:
    first = told(folder, name)
    changed = {}
    for rewriting in SAME:
        trace = opened(tmp_path, rewriting(profile(name)))
        read, *others = first.counts
        now = report_of(trace).read
        if rewriting is begins_and_ends:
            now, read = (_slices(counts) for counts in (now, read))
        is_same = {
            "tables": contents_of(trace) == first.tables,
            "findings": findings_of(trace) == first.findings,
            "blame": blamed(trace) == first.blamed,
            "counts": (now, *counts_of(trace)[1:]) == (read, *others),
        }
        changed[rewriting.__name__] = [part for part, same in is_same.items() if not same]

    assert changed == {rewriting.__name__: [] for rewriting in SAME}


def _slices(read: dict[str, int]) -> dict[str, int]:
    """Begins counted as slices, and ends not."""
    counts = Counter(read)
    assert counts["B"] == counts["E"]
    return {**counts, "X": counts["X"] + counts["B"], "B": 0, "E": 0}


@slow
def test_an_array_of_events_holds_them_all_and_says_nothing_of_who_wrote_it(
    folder: Path, tmp_path: Path, name: str
) -> None:
    trace = opened(tmp_path, text_of(profile(name).events).encode())

    first = told(folder, name)
    assert (contents_of(trace), counts_of(trace)) == (first.tables, first.counts)
    assert blamed(trace) == first.blamed
    assert (trace.manifest.producer, trace.manifest.config) == ("Chrome JSON", {})


def test_tracks_with_other_numbers_are_as_many_with_the_same_in_each(
    folder: Path, tmp_path: Path, name: str
) -> None:
    document = profile(name)
    for event in document.events:
        for key in ("pid", "tid"):
            if key in event:
                event[key] = f"number {written(event[key])}"

    trace = opened(tmp_path, plain(document))

    first = told(folder, name)
    assert _by_track(rows_of(trace, "spans")) == _by_track(first.tables["spans"])
    assert counts_of(trace) == first.counts
    assert blamed(trace) == first.blamed


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

    first = told(folder, name)
    read, *others = first.counts
    assert _by_track(rows_of(trace, "spans")) == _by_track(first.tables["spans"])
    assert blamed(trace) == first.blamed
    assert report_of(trace).read == {ph: num for ph, num in read.items() if ph != "M"}
    assert list(counts_of(trace)[1:]) == others


def test_flows_that_slices_carry_are_the_flows_of_their_own_events(
    folder: Path, tmp_path: Path, name: str
) -> None:
    document = profile(name)
    first = told(folder, name)
    tables, read = first.tables, first.counts[0]
    num_carried = _carried(document)
    if not num_carried:
        pytest.skip("no slice of it begins where an arrow does")

    trace = opened(tmp_path, plain(document))

    now = Counter(report_of(trace).read)
    assert sum(now[ph] for ph in FLOW_ENDS.values()) == num_carried
    assert sum(now[ph] for ph in "stf") == sum(Counter(read)[ph] for ph in "stf") - num_carried
    assert rows_of(trace, "flows", "name", "category") == _without_names(tables["flows"])
    assert contents_of(trace)["spans"] == tables["spans"]
    assert blamed(trace) == first.blamed


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


@slow
@pytest.mark.parametrize("is_array", [False, True])
def test_what_stands_behind_the_end_is_said_to_be_there(
    folder: Path, tmp_path: Path, name: str, is_array: bool
) -> None:
    document = profile(name)
    content = (text_of(document.events) if is_array else text_of(document.top())).encode()
    for behind in (b"garbage", b"}", b"]", b'"', b"{}", b"\0\0"):
        trace = opened(tmp_path, content + behind)

        assert contents_of(trace) == told(folder, name).tables, behind
        assert blamed(trace) == told(folder, name).blamed, behind
        assert BEHIND in report_of(trace).notes, behind


def test_space_behind_the_end_and_a_comma_behind_the_last_event_are_nothing(
    folder: Path, tmp_path: Path, name: str
) -> None:
    document = profile(name)
    last = text_of(document.events[-1])

    trace = opened(
        tmp_path, plain(document).replace(f"{last}]".encode(), f"{last} , ]".encode()) + b"\n "
    )

    first = told(folder, name)
    assert (contents_of(trace), counts_of(trace)) == (first.tables, first.counts)
    assert blamed(trace) == first.blamed
    assert BEHIND not in report_of(trace).notes
