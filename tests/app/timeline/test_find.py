"""Finding: from a finding or a few letters to the lane and the time."""

from __future__ import annotations

from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.app.timeline import Timeline
from stepscope.ingest.trace import Trace
from tests.traces import trace_of


def a_trace() -> Trace:
    block = {"block": 0, "shape": "AIC", "core_kind": "AIC"}
    return trace_of(
        steps=[{"step": n, "ts_ns": 100 * n, "dur_ns": 90, "kind": "decode"} for n in range(3)],
        lifecycle=[{"ts_ns": n, "request": f"req-{n}", "event": "arrive"} for n in range(12)],
        tasks=[
            {"task": 1, "name": "gate", "shape": "AIC", "num_blocks": 1},
            {"task": 2, "name": "gather", "shape": "AIC", "num_blocks": 2},
        ],
        core_spans=[
            {**block, "task": 1, "group": 0, "core": 0, "ts_ns": 5, "end_ns": 9},
            {**block, "task": 2, "group": 1, "core": 1, "ts_ns": 7, "end_ns": 8},
            {**block, "task": 2, "group": 1, "core": 1, "ts_ns": 6, "end_ns": 7},
        ],
        spans=[
            {"track": "gpu", "name": "outer", "ts_ns": 0, "dur_ns": 50},
            {"track": "gpu", "name": "Gate kernel", "ts_ns": 10, "dur_ns": 5},
        ],
    )


def finding(**where: int | str) -> Finding:
    return Finding("COR001", "mix", Severity.ERROR, "message", "fix", **where)  # type: ignore[arg-type]  # fields of two types


def test_a_findings_lane_is_the_closest_thing_that_it_names() -> None:
    timeline = Timeline.of(a_trace())
    named: list[tuple[dict[str, int | str], tuple[str, str]]] = [
        ({"core": 1, "group": 0}, ("group 1", "AIC")),
        ({"group": 1}, ("group 1", "AIC")),
        ({"task": 2}, ("group 1", "AIC")),
        ({"request": "req-3"}, ("", "req-3")),
        ({"core": 99, "request": "req-3"}, ("", "req-3")),
        ({"step": 1}, ("", "engine")),
        ({}, ("", "engine")),
        ({"rank": 0, "task": 1}, ("group 0", "AIC")),
    ]

    lanes = [timeline.lane_of(finding(**where)) for where, _ in named]

    assert [
        (where, (timeline.lanes[lane].group, timeline.lanes[lane].label))
        for (where, _), lane in zip(named, lanes, strict=True)
        if lane is not None
    ] == named


def test_a_finding_in_a_trace_without_lanes_has_none() -> None:
    assert Timeline.of(trace_of()).lane_of(finding(core=1, task=4)) is None


def test_the_closest_match_comes_first() -> None:
    timeline = Timeline.of(a_trace())
    closest = {
        "step 2": ("step", "step 2", 200),
        "2": ("step", "step 2", 200),
        "req-11": ("request", "request req-11", 11),
        "request req-1": ("request", "request req-1", 1),
        "core 1": ("core", "core 1", 6),
        "group 0": ("group", "group 0", 5),
        "GATHER": ("task", "gather", 6),
        "kernel": ("span", "Gate kernel", 10),
    }

    first = {text: timeline.find(text)[0] for text in closest}

    assert {text: (hit.kind, hit.label, hit.ts_ns) for text, hit in first.items()} == closest


def test_a_whole_name_ranks_before_its_beginning_and_that_before_any_part() -> None:
    hits = Timeline.of(a_trace()).find("gat")

    assert [(hit.kind, hit.label, hit.count) for hit in hits] == [
        ("task", "gate", 1),
        ("task", "gather", 2),
        ("span", "Gate kernel", 1),
    ]


def test_a_hit_leads_to_the_sublane_that_shows_it() -> None:
    timeline = Timeline.of(a_trace())

    (hit,) = timeline.find("gate kernel")

    assert hit.lane is not None
    assert timeline.lanes[hit.lane].depth == 1
    shown = timeline.at(hit.lane, hit.ts_ns)
    assert shown is not None
    assert shown.label == "Gate kernel"


def test_hits_are_capped_and_nothing_is_found_for_nothing() -> None:
    timeline = Timeline.of(a_trace())

    assert len(timeline.find("req", limit=5)) == 5
    assert timeline.find("  ") == []
    assert timeline.find("no such thing") == []
    assert timeline.find("step 99") == []


def test_what_is_searched_for_is_not_a_pattern() -> None:
    assert Timeline.of(a_trace()).find(".*") == []
    assert Timeline.of(a_trace()).find("[") == []


def test_a_step_of_several_ranks_is_found_in_each() -> None:
    trace = trace_of(steps=[{"rank": r, "step": 4, "ts_ns": r, "kind": "idle"} for r in (0, 1)])

    hits = Timeline.of(trace).find("step 4")

    assert [(hit.lane, hit.ts_ns) for hit in hits] == [(0, 0), (1, 1)]


def test_a_step_that_does_not_say_how_long_it_took_is_found_as_long_as_its_lane_shows_it() -> None:
    timeline = Timeline.of(
        trace_of(
            steps=[{"step": n, "ts_ns": 100 * n, "kind": "decode"} for n in (1, 2)],
            batch_rows=[
                {"step": 3, "ts_ns": 350, "request": "a", "phase": "decode", "num_tokens": 1}
            ],
            counters=[{"name": "c", "ts_ns": 399, "value": 1.0}],
        )
    )

    hits = [timeline.find(f"step {number}")[0] for number in (1, 2, 3)]

    assert [(hit.ts_ns, hit.end_ns) for hit in hits] == [(100, 200), (200, 350), (350, 400)]
    assert {hit.lane for hit in hits} == {0}


def test_a_request_is_found_by_the_id_that_its_client_knows_it_by() -> None:
    rows = [
        {"ts_ns": 3, "request": "9f-1", "event": "receive", "external_id": "Chat-17"},
        {"ts_ns": 7, "request": "9f-1", "event": "arrive", "external_id": "Chat-17"},
        {"ts_ns": 9, "request": "9f-1", "event": "admit"},
        {"ts_ns": 8, "request": "chat", "event": "arrive"},
    ]
    timeline = Timeline(trace_of(lifecycle=rows))

    (found,) = timeline.find("chat-17")

    assert (found.kind, found.label, found.ts_ns) == ("request", "Chat-17: 9f-1", 3)
    assert found.lane == timeline.lane_of_request(0, "9f-1")
