"""Spans of Jaeger: the same as those of OTLP, as its query API and its page write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.rules.stv.stv025_long_queue import LongQueue
from stepscope.ingest.errors import TraceError
from stepscope.ingest.limits import Limits
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import report_of
from tests.looped import looped
from tests.tiers import slow

BEGIN_US = 1_700_000_000_000_000
SECOND_US, SECOND = 10**6, 10**9
KINDS = {str: "string", int: "int64", float: "float64", bool: "bool"}
Json = dict[str, Any]


def tags(**said: Any) -> list[Json]:
    return [
        {"key": key.replace("__", "."), "type": KINDS[type(value)], "value": value}
        for key, value in said.items()
    ]


def span(name: str, begin_s: float, dur_s: float, **said: Any) -> Json:
    return {
        "traceID": "a1", "spanID": name, "operationName": name, "references": [],
        "startTime": BEGIN_US + round(begin_s * SECOND_US), "duration": round(dur_s * SECOND_US),
        "tags": tags(**said), "logs": [], "processID": "p1", "warnings": None,
    }  # fmt: skip


def request(number: int, begin_s: float, queue_s: float, **said: Any) -> Json:
    latencies = {
        "gen_ai__request__id": f"r{number}", "gen_ai__latency__time_in_queue": queue_s,
        "gen_ai__latency__time_to_first_token": queue_s + 0.5,
        "gen_ai__latency__e2e": queue_s + 3.5, "gen_ai__usage__completion_tokens": 100,
    }  # fmt: skip
    return span("llm_request", begin_s, queue_s + 3.5, **latencies, **said)


def answer(*spans: Json, service: str = "vllm") -> Json:
    process = {"serviceName": service, "tags": tags(hostname="a")}
    return {"data": [{"traceID": "a1", "spans": list(spans), "processes": {"p1": process}}]}


def opened(folder: Path, found: object, limits: Limits | None = None) -> Trace:
    file = folder / "traces.json"
    file.write_text(json.dumps(found))
    return Trace.open(file, limits=limits or Limits())


def test_a_request_s_span_tells_its_lifecycle_by_its_latencies(tmp_path: Path) -> None:
    trace = opened(tmp_path, answer(request(1, 0, 1.2)))

    begin = BEGIN_US * 1_000
    assert rows(trace, "lifecycle", "request", "event", "ts_ns") == [
        ("r1", "arrive", begin),
        ("r1", "admit", begin + 1_200_000_000),
        ("r1", "first-token", begin + 1_700_000_000),
        ("r1", "finish", begin + 4_700_000_000),
    ]
    assert (trace.manifest.producer, trace.manifest.clock.kind) == ("Jaeger", "wall")


def test_a_long_queue_is_found(tmp_path: Path) -> None:
    fast = [request(n, n, 0.01) for n in range(4)]
    slow = [request(n, n, 30.0) for n in range(4, 20)]

    (found,) = check(opened(tmp_path, answer(*fast, *slow)), (LongQueue(),)).findings

    assert found.message.startswith("16 of 20 requests waited 30.0 s on average")


@looped("wrapped", [
    pytest.param(lambda data: data[0], id="one trace alone"),
    pytest.param(lambda data: data, id="a list of traces"),
    pytest.param(lambda data: {"data": data, "total": 0, "errors": None}, id="an answer"),
])  # fmt: skip
def test_traces_may_stand_in_an_answer_in_a_list_or_alone(tmp_path: Path, wrapped: Any) -> None:
    data = answer(request(1, 0, 1.2))["data"]

    trace = opened(tmp_path, wrapped(data))

    assert rows(trace, "spans", "track", "name") == [("vllm", "llm_request")]
    assert trace.num_rows("lifecycle") == 4


def test_processes_of_two_traces_that_share_an_id_are_two(tmp_path: Path) -> None:
    both = [*answer(span("a", 0, 1))["data"], *answer(span("b", 0, 1), service="router")["data"]]

    trace = opened(tmp_path, {"data": both})

    assert sorted(rows(trace, "spans", "name", "track")) == [("a", "vllm"), ("b", "router")]


def test_processes_may_stand_before_the_spans_and_scopes_are_part_of_the_track(
    tmp_path: Path,
) -> None:
    (trace,) = answer(span("a", 0, 1, otel__scope__name="vllm.llm_engine"))["data"]
    turned = {"processes": trace["processes"], "spans": trace["spans"], "traceID": "a1"}

    assert rows(opened(tmp_path, turned), "spans", "track") == ["vllm / vllm.llm_engine"]


def test_children_of_a_request_are_its_stages(tmp_path: Path) -> None:
    def stage(name: str, begin_s: float, dur_s: float) -> Json:
        parent = {"refType": "CHILD_OF", "traceID": "a1", "spanID": "llm_request"}
        return span(name, begin_s, dur_s) | {"references": [parent]}

    stages = (
        stage("prefill_waiting", 0.5, 2), stage("prefill_forward", 2.5, 0.5),
        stage("decode_forward", 3, 4),
    )  # fmt: skip
    root = span("llm_request", 0, 8, gen_ai__request__id="r")

    trace = opened(tmp_path, answer(*stages, root))

    assert rows(trace, "lifecycle", "event") == [
        "receive", "arrive", "admit", "first-token", "finish", "deliver",
    ]  # fmt: skip


@looped("said", [
    {"error": True, "otel__status_description": "out of memory"},
    {"otel__status_code": "ERROR", "otel__status_description": "out of memory"},
])  # fmt: skip
def test_a_span_that_failed_is_a_request_that_ended_in_an_error(tmp_path: Path, said: Json) -> None:
    trace = opened(tmp_path, answer(request(1, 0, 1.0, **said)))

    assert rows(trace, "lifecycle", "event", "cause")[-1] == ("error", "out of memory")


def test_numbers_that_a_store_wrote_as_text_are_numbers(tmp_path: Path) -> None:
    texts = request(1, 0, 1.5)
    for tag in texts["tags"]:
        tag["value"] = str(tag["value"])

    trace = opened(tmp_path, answer(texts))

    assert rows(trace, "lifecycle", "event", "num_generated")[-1] == ("finish", 100)
    assert trace.num_rows("lifecycle") == 4


def test_logs_are_events_with_their_name_and_fields(tmp_path: Path) -> None:
    fields = tags(event="retry", tries=3)
    logs = [{"timestamp": BEGIN_US + 5, "fields": fields}, {"timestamp": None}, 7]

    trace = opened(tmp_path, answer(span("a", 0, 1) | {"logs": logs}))

    assert rows(trace, "spans", "name", "form", "ts_ns")[1] == (
        "retry", "instant", (BEGIN_US + 5) * 1_000
    )  # fmt: skip
    assert json.loads(rows(trace, "spans", "args")[1]) == {"tries": 3}
    assert report_of(trace).skipped == {"events of spans without a time": 2}


@looped("odd", [
    {"startTime": None}, {"startTime": "soon"}, {"startTime": -1}, {"startTime": 1 << 61},
    {"startTime": 0.5}, {"startTime": 10**400}, {"startTime": "1" * 999},
])  # fmt: skip
def test_a_span_without_a_time_is_counted_and_the_others_are_kept(
    tmp_path: Path, odd: Json
) -> None:
    trace = opened(tmp_path, answer(span("a", 0, 1), span("b", 0, 1) | odd))

    assert rows(trace, "spans", "name") == ["a"]
    assert report_of(trace).skipped == {"spans without a time": 1}


@looped("odd", [
    {"tags": 5}, {"tags": [5, {"key": 7}, {"key": "k", "value": [1]}]}, {"logs": {"a": 1}},
    {"operationName": None}, {"duration": "long"}, {"references": [3, {"refType": "CHILD_OF"}]},
    {"processID": None}, {"tags": [{"key": "k", "type": "float64", "value": "9" * 5_000}]},
    {"tags": [{"key": "gen_ai.request.id", "type": "int64", "value": 5}]},
])  # fmt: skip
def test_fields_of_other_types_cost_no_span(tmp_path: Path, odd: Json) -> None:
    assert opened(tmp_path, answer(span("a", 0, 1) | odd)).num_rows("spans") == 1


@slow
def test_a_file_that_is_cut_off_keeps_every_whole_span(tmp_path: Path) -> None:
    whole = json.dumps(answer(request(1, 0, 1.5), request(2, 1, 1.5))).encode()
    file = tmp_path / "cut.json"
    seen = set()

    for end in range(len(whole) - 1, 0, -7):
        file.write_bytes(whole[:end])
        try:
            trace = Trace.open(file)
        except TraceError:
            seen.add(0)
            continue
        seen.add(trace.num_rows("spans"))
        assert not trace.manifest.closed
        assert any("all before is kept" in note for note in report_of(trace).notes)
    assert seen == {0, 1, 2}


def test_what_is_beyond_the_limit_of_events_is_said(tmp_path: Path) -> None:
    trace = opened(tmp_path, answer(*(span(f"s{n}", n, 1) for n in range(9))), Limits(events=4))

    assert trace.num_rows("spans") == 5
    assert any("more than 4 events" in note for note in report_of(trace).notes)
