"""What a report holds of the timeline is what the timeline says."""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np
import pytest

from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.report import plates as plates_module
from stepscope.app.web.report.plates import WHOLE_WIDTH, plates
from stepscope.app.web.report.shown_lanes import BESIDE, lanes_of, model
from tests.app.web.small_traces import conflict_trace, loaded_of
from tests.traces import trace_of

ROOM = 3_000_000


def unpacked(packed: bytes) -> tuple[dict[str, Any], bytes]:
    head, _, columns = gzip.decompress(packed).partition(b"\n")
    return json.loads(head), columns


def spans_in(head: dict[str, Any], lane: int) -> list[tuple[int, int, str]]:
    held = next(each for each in head["sparse"] if each["lane"] == lane)
    found, before = [], 0
    for gap, dur, label in zip(held["gap"], held["dur"], held["label"], strict=True):
        start = before + gap
        before = start + dur
        found.append((start, before, head["labels"][label]))
    return found


def crowded_lanes(num_spans: int = 3_000) -> LoadedTrace:
    """Two tracks with as many spans as that, of random lengths."""
    random = np.random.default_rng(1)
    rows = [
        {"ts_ns": int(at * 1000), "dur_ns": int(random.integers(1, 900)), "track": track,
         "name": f"k{at % 7}", "category": "kernel"}
        for track in ("GPU 0 / stream 1", "GPU 0 / stream 2") for at in range(num_spans)
    ]  # fmt: skip
    return loaded_of(trace_of(name="crowded", spans=rows))


def test_a_small_trace_is_held_span_by_span() -> None:
    loaded = loaded_of(conflict_trace())
    lanes = lanes_of(loaded)
    [whole, *_] = plates(loaded, lanes, None, ROOM)
    head, _ = unpacked(whole)

    for lane in loaded.timeline.lanes:
        if lane.kind == "counter":
            continue
        exact = loaded.timeline.spans(lane.id, *loaded.timeline.bounds, 10_000)
        assert spans_in(head, lane.id) == [
            (each.start_ns - loaded.origin, each.end_ns - loaded.origin, each.label)
            for each in exact
        ]


def test_lanes_with_too_many_spans_are_held_as_the_pixels_of_the_timeline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plates_module, "MOST_SPANS", 2_000)
    loaded = crowded_lanes()
    lanes = lanes_of(loaded)
    head, columns = unpacked(plates(loaded, lanes, None, ROOM)[0])

    own = [lane for lane in lanes if lane in head["dense"]]
    seen = loaded.timeline.query(*loaded.timeline.bounds, WHOLE_WIDTH, own)
    at, size = head["state"]
    assert len(own) == 2
    assert columns[at : at + size] == seen.state.tobytes()
    at, size = head["density"]
    assert columns[at : at + size] == seen.density.tobytes()


def test_around_where_runs_diverge_crowded_lanes_are_held_span_by_span(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plates_module, "MOST_SPANS", 2_000)
    loaded = crowded_lanes()
    lanes = lanes_of(loaded)
    made = plates(loaded, lanes, (1_000_000, 1_010_000), ROOM)
    head, _ = unpacked(made[1])

    assert head["dense"] == []
    assert head["t0"] <= 1_000_000
    assert head["t1"] >= 1_010_000


def test_the_whole_run_is_drawn_coarser_where_there_is_less_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plates_module, "MOST_SPANS", 2_000)
    loaded = crowded_lanes()
    [whole, *_] = plates(loaded, lanes_of(loaded), None, 16_000)

    assert unpacked(whole)[0]["width"] < WHOLE_WIDTH
    assert len(whole) <= 8_000


def test_of_a_great_many_lanes_those_of_findings_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = loaded_of(conflict_trace())
    about = next(iter(loaded.findings.values()))
    lane = loaded.timeline.lane_of(about)
    assert lane is not None
    monkeypatch.setattr("stepscope.app.web.report.shown_lanes.MOST_LANES", BESIDE + 1)
    monkeypatch.setattr("stepscope.app.web.report.shown_lanes.BESIDE", 1)
    held = lanes_of(loaded)
    shown = model(loaded, held)

    assert {lane - 1, lane, lane + 1} <= set(held)
    assert [each["id"] for each in shown["lanes"]] == list(range(len(held)))
    assert shown["findings"][0]["lane"] == held.index(lane)
    assert all(row["lanes"] or row["key"] for row in shown["rows"])
    assert {each for row in shown["rows"] for each in row["lanes"]} == set(range(len(held)))
