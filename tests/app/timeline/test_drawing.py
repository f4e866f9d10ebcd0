"""The picture of a finding: what it is about, framed, in a document that any browser draws."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.app.timeline.drawing import MAX_LANES, drawing_of
from stepscope.app.timeline.model import Timeline
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.tiers import slow
from tests.traces import trace_of


@pytest.fixture(scope="module")
def mix() -> Trace:
    return Trace.open(ROOT / "sample_traces" / "mix-admission-before.trace")


@slow
def test_a_conflict_on_a_core_group_is_drawn_with_all_cores_of_the_group(mix: Trace) -> None:
    worst = check(mix).findings[0]
    drawing = drawing_of(Timeline.of(mix), worst)

    assert [lane.label for lane in drawing.lanes] == ["engine", "AIC", "AIV0", "AIV1"]
    assert drawing.first_ns == worst.ts_ns
    assert drawing.view.t0 < drawing.first_ns < drawing.last_ns < drawing.view.t1
    words = "".join(fromstring(drawing.svg()).itertext())  # noqa: S314 - our own picture
    assert "qk_pv L1 b0" in words
    assert "held" in words


def test_a_picture_never_has_more_lanes_than_fit_and_has_that_of_the_request() -> None:
    trace = Trace.open(ROOT / "sample_traces" / "fcfs-preemption-before.trace")
    finding = Finding("STV001", "x", Severity.ERROR, "m", "f", request="req-37", ts_ns=9)

    drawing = drawing_of(Timeline.of(trace), finding)

    assert len(drawing.lanes) == MAX_LANES
    assert "req-37" in {lane.label for lane in drawing.lanes}


def test_a_finding_without_a_time_is_drawn_over_a_part_of_the_trace_and_an_empty_one_draws() -> (
    None
):
    finding = Finding("TRC001", "x", Severity.WARNING, "m", "f")

    for trace in (trace_of(), trace_of(steps=[{"step": 1, "kind": "decode", "dur_ns": 5}])):
        svg = drawing_of(Timeline.of(trace), finding).svg()
        assert fromstring(svg).tag.endswith("svg")  # noqa: S314 - our own picture


def test_names_from_a_trace_are_text_in_the_picture_and_nothing_else() -> None:
    trace = trace_of(
        spans=[{"span": 1, "track": "t<g>", "name": "</svg><script>", "ts_ns": 0, "dur_ns": 900}]
    )
    svg = drawing_of(Timeline.of(trace), Finding("X", "x", Severity.INFO, "m", "f")).svg()

    assert "<script>" not in svg
    assert "".join(fromstring(svg).itertext()).count("</svg><script>") == 2  # noqa: S314 - our own picture
