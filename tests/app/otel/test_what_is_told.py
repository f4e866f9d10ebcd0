"""What spans and metrics say of a trace; a file of them and what is sent are the same messages."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from stepscope.analyzers.check.run import check
from stepscope.app.otel.endpoint import endpoint_of
from stepscope.app.otel.telling import send
from stepscope.ingest.manifest import ClockInfo
from stepscope.ingest.trace import Trace
from tests.app.otel.receiver import Received, receiving
from tests.app.otel.written import told, written
from tests.conftest import ROOT
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

Json = dict[str, Any]
BEGAN = 1_700_000_000_000_000_000
SERVED = [
    {"request": "r", "event": "arrive", "ts_ns": BEGAN, "prompt_len": 9, "max_tokens": 64,
     "priority": 3},
    {"request": "r", "event": "admit", "ts_ns": BEGAN + 1_500_000_000},
    {"request": "r", "event": "first-token", "ts_ns": BEGAN + 2_000_000_000},
    {"request": "r", "event": "finish", "ts_ns": BEGAN + 9_500_000_001, "num_generated": 20},
]  # fmt: skip


def spans_in(trace: Trace, folder: Path) -> list[Json]:
    lines = [json.loads(line) for line in written(trace, folder).read_text().splitlines()]
    return [
        span
        for line in lines
        for resource in line["resourceSpans"]
        for scoped in resource["scopeSpans"]
        for span in scoped["spans"]
    ]


def said(span: Json) -> Json:
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


def of_events(*events: dict[str, Any], **manifest: Any) -> Trace:
    return trace_of(lifecycle=[{"request": "r", **event} for event in events], **manifest)


def test_a_request_is_told_by_the_conventions_names(tmp_path: Path) -> None:
    request, *phases = spans_in(of_events(*SERVED), tmp_path)

    assert (request["name"], request["kind"]) == ("llm_request", 2)
    assert said(request) == {
        "gen_ai.request.id": "r",
        "stepscope.rank": "0",
        "gen_ai.usage.input_tokens": "9",
        "gen_ai.usage.prompt_tokens": "9",
        "gen_ai.usage.output_tokens": "20",
        "gen_ai.usage.completion_tokens": "20",
        "gen_ai.request.max_tokens": "64",
        "gen_ai.request.priority": "3",
        "gen_ai.latency.time_in_queue": 1.5,
        "gen_ai.latency.time_to_first_token": 2.0,
        "gen_ai.latency.e2e": 9.500000001,
        "stepscope.came_to": "finish",
    }
    assert [(each["name"], int(each["startTimeUnixNano"]) - BEGAN) for each in phases] == [
        ("queue", 0), ("prefill", 1_500_000_000), ("decode", 2_000_000_000),
    ]  # fmt: skip
    assert {each["parentSpanId"] for each in phases} == {request["spanId"]}
    assert {each["traceId"] for each in phases} == {request["traceId"]}
    assert phases[-1]["endTimeUnixNano"] == str(BEGAN + 9_500_000_001)


def test_what_was_not_recorded_has_no_attribute(tmp_path: Path) -> None:
    (request,) = spans_in(of_events({"event": "preempt", "ts_ns": BEGAN}), tmp_path)[:1]

    assert said(request) == {
        "gen_ai.request.id": "r", "stepscope.rank": "0", "stepscope.is_open": True
    }  # fmt: skip
    assert "status" not in request


@looped(("event", "cause", "message"), [
    ("error", "out of memory", "out of memory"), ("reject", None, "reject"),
])  # fmt: skip
def test_a_request_that_failed_has_the_status_of_an_error(
    tmp_path: Path, event: str, cause: str | None, message: str
) -> None:
    (request,) = spans_in(of_events({"event": event, "ts_ns": BEGAN, "cause": cause}), tmp_path)[:1]

    assert request["status"] == {"code": 2, "message": message}
    assert said(request)["error.type"] == event


def test_an_abort_is_no_error(tmp_path: Path) -> None:
    (request, *_) = spans_in(of_events({"event": "abort", "ts_ns": BEGAN}), tmp_path)

    assert "status" not in request
    assert said(request)["stepscope.came_to"] == "abort"


def test_what_is_open_ends_with_the_trace_and_says_so(tmp_path: Path) -> None:
    step = {"step": 1, "ts_ns": BEGAN + 5, "dur_ns": 95, "kind": "decode"}
    trace = trace_of(lifecycle=[{"request": "r", **SERVED[0]}], steps=[step])

    request, queue = spans_in(trace, tmp_path)

    assert request["endTimeUnixNano"] == queue["endTimeUnixNano"] == str(BEGAN + 100)
    assert said(queue)["stepscope.is_open"] is True


def test_a_clock_without_a_date_begins_where_it_is_asked_to() -> None:
    trace = of_events({"event": "arrive", "ts_ns": 0}, clock=ClockInfo("virtual"))

    (undated, *_), (dated, *_) = (
        told(trace, "spans", began_ns=began).spans() for began in (None, BEGAN)
    )

    assert undated.begins_ns == 86_400 * 10**9
    assert dated.begins_ns == BEGAN
    assert dated.trace_id != undated.trace_id


def test_a_clock_that_has_a_date_keeps_it() -> None:
    (request, *_) = told(of_events(SERVED[0]), "spans", began_ns=5).spans()

    assert request.begins_ns == BEGAN


def test_two_runs_that_are_not_the_same_have_other_ids() -> None:
    one, other = (told(of_events(SERVED[0], variant=name), "spans") for name in ("a", "b"))

    assert next(one.spans()).trace_id != next(other.spans()).trace_id


@slow
def test_findings_are_counted_by_rule_and_severity_and_those_that_could_not_judge_have_none() -> (
    None
):
    trace = Trace.open(ROOT / "sample_traces" / "fcfs-preemption-before.trace")
    checked = check(trace)

    found, silent = told(trace, "metrics").gauges()

    numbers = {
        (each.attributes["stepscope.rule"], each.attributes.get("stepscope.severity")): each.value
        for each in found.points
    }
    assert numbers["STV001", "error"] == checked.counts["STV001"] > 0
    clean = {rule for (rule, severity), number in numbers.items() if severity is None}
    assert clean == {code for code, number in checked.counts.items() if not number}
    assert {number for (_, severity), number in numbers.items() if severity is None} == {0}
    assert {rule for rule, _ in numbers} == checked.counts.keys()
    assert sum(number for number in numbers.values()) == sum(checked.counts.values())
    assert [each.value for each in silent.points] == [len(checked.not_applicable)]


def as_official(line: Json, kind: type[Any]) -> Any:
    """JSON as the messages of OpenTelemetry, of which JSON has ids as base64 otherwise."""
    text = json.dumps(line)
    found = json.loads(text)
    for resource in found.get("resourceSpans", ()):
        for scoped in resource["scopeSpans"]:
            for span in scoped["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in span:
                        raw = bytes.fromhex(span[name])
                        span[name] = base64.b64encode(raw).decode()
    return json_format.ParseDict(found, kind())


def sent(trace: Trace) -> Received:
    with receiving() as received:
        send(told(trace), endpoint_of(received.endpoint), 5.0)
    return received


@slow
@looped("name", ["fcfs-preemption-before", "vllm_crowd"])
def test_a_file_holds_the_messages_that_are_sent(name: str, tmp_path: Path) -> None:
    trace = Trace.open(ROOT / "sample_traces" / f"{name}.trace")

    content = written(trace, tmp_path, "spans", "metrics").read_text()
    lines = [json.loads(line) for line in content.splitlines()]
    received = sent(trace)

    official = [as_official(line, ExportTraceServiceRequest) for line in lines[:-1]]
    written_spans = [
        span for message in official for span in message.resource_spans[0].scope_spans[0].spans
    ]
    for span in (every := received.every_span()):
        span.flags = 0  # of what came from another process, which the SDK says of each
        if not span.status.code:
            span.ClearField("status")  # it says of each, too, that no status is set
    assert every == written_spans
    assert len(every) > 100
    assert received.spans[0].resource_spans[0].resource == official[0].resource_spans[0].resource
    assert received.metrics == [as_official(lines[-1], ExportMetricsServiceRequest)]
