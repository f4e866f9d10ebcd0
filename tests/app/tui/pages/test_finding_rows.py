"""The table of findings is as wide as what stands in it."""

from __future__ import annotations

from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui.pages.finding_rows import FindingRows
from tests.traces import trace_of

SECOND_NS = 1_000_000_000


def test_a_time_is_shown_whole_and_takes_no_more_cells_than_it_needs() -> None:
    steps = [
        {"step": at, "ts_ns": at * 2_000 * SECOND_NS, "dur_ns": SECOND_NS, "kind": "decode"}
        for at in range(2)
    ]
    for at_s, time in ((0, "0.000 ms"), (1_116, "1,116.000000 s")):
        found = [
            Finding("STV001", "x", Severity.ERROR, "m", "f"),
            Finding("STV001", "x", Severity.ERROR, "m", "f", ts_ns=at_s * SECOND_NS),
        ]
        rows = FindingRows(Navigator(Timeline.of(trace_of(steps=steps)), found))

        assert rows.cells(1)[-1][0] == time  # type: ignore[index]  # a text and its style
        assert rows.columns[-1].width == len(time)


def test_without_findings_no_time_is_asked_for() -> None:
    steps = [{"step": 0, "ts_ns": SECOND_NS << 20, "dur_ns": SECOND_NS, "kind": "decode"}]

    rows = FindingRows(Navigator(Timeline.of(trace_of(steps=steps)), []))

    assert rows.columns[-1].width == len("0.000 ms")
