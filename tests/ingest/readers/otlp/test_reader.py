"""Spans of OpenTelemetry: what they tell of requests, and what nobody would write."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from google.protobuf import json_format
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, set_span_in_context

from stepscope.analyzers.latency.blame import blame
from stepscope.ingest.errors import TraceError
from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.otlp.collect import USED_AGAIN
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import open_bytes, rows
from tests.ingest.log_files import report_of
from tests.ingest.real_files import shared_file
from tests.looped import looped
from tests.tiers import slow

BEGIN = 1_700_000_000_000_000_000
SECOND = 10**9
Json = dict[str, Any]


def attributes(**said: Any) -> list[Json]:
    kinds = {str: "stringValue", int: "intValue", float: "doubleValue", bool: "boolValue"}
    return [
        {"key": key.replace("__", "."), "value": {kinds[type(value)]: value}}
        for key, value in said.items()
    ]


def span(name: str, begin_s: float, dur_s: float, **said: Any) -> Json:
    begins = BEGIN + int(begin_s * SECOND)
    return {
        "traceId": "5b8e", "spanId": name, "name": name, "kind": 2,
        "startTimeUnixNano": str(begins), "endTimeUnixNano": str(begins + int(dur_s * SECOND)),
        "attributes": attributes(**said),
    }  # fmt: skip


def request(number: int, begin_s: float, dur_s: float, **said: Any) -> Json:
    told = {"gen_ai__request__id": f"cmpl-{number}", "gen_ai__usage__prompt_tokens": 9} | said
    return span("llm_request", begin_s, dur_s, **told)


SERVED = request(1, 0, 10, gen_ai__latency__time_in_queue=1.5, gen_ai__request__max_tokens=64,
                 gen_ai__latency__time_to_first_token=2.0, gen_ai__latency__e2e=9.5,
                 gen_ai__usage__completion_tokens=20)  # fmt: skip


def exported(*spans: Json, service: str = "vllm") -> Json:
    resource = {"attributes": attributes(service__name=service)}
    scoped = {"scope": {"name": "vllm.llm_engine"}, "spans": list(spans)}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scoped]}]}


def opened(folder: Path, *objects: Json, limits: Limits | None = None) -> Trace:
    file = folder / "spans.jsonl"
    file.write_text("\n".join(map(json.dumps, objects)))
    return Trace.open(file, limits=limits or Limits())


def test_a_request_s_span_tells_its_lifecycle_by_its_latencies(tmp_path: Path) -> None:
    trace = opened(tmp_path, exported(SERVED))

    half = SECOND // 2
    assert rows(trace, "lifecycle", "event", "ts_ns", "prompt_len", "num_generated") == [
        ("arrive", BEGIN, 9, None),
        ("admit", BEGIN + 3 * half, None, None),
        ("first-token", BEGIN + 4 * half, None, None),
        ("finish", BEGIN + 19 * half, None, 20),
    ]
    assert trace.manifest.tables["lifecycle"] == "inferred"


def test_latencies_that_are_written_as_text_are_read(tmp_path: Path) -> None:
    latencies = {"time_in_queue": "1.5", "time_to_first_token": " 2.0 ", "e2e": "9.5e0"}
    texts = {f"gen_ai__latency__{name}": text for name, text in latencies.items()}
    texts |= {"gen_ai__request__max_tokens": "64", "gen_ai__usage__completion_tokens": "20"}

    trace, numbers = (
        opened(tmp_path, exported(request(1, 0, 10, **texts))),
        opened(tmp_path, exported(SERVED)),
    )

    assert trace.lifecycle.collect().equals(numbers.lifecycle.collect())
    assert report_of(trace).skipped == {}


@looped("value", ["soon", "", "nan", "inf", "-1", "1e400", "0x10", "1_0", True, -2.0, 1e300])
def test_a_latency_that_cannot_be_read_is_counted(tmp_path: Path, value: Any) -> None:
    said = {"gen_ai__latency__time_in_queue": value, "gen_ai__usage__completion_tokens": "many"}

    trace = opened(tmp_path, exported(request(1, 0, 10, **said), request(2, 1, 3)))

    assert "admit" not in trace.lifecycle.collect()["event"]
    assert report_of(trace).skipped == {
        "values of gen_ai.latency.time_in_queue that are not a number of seconds": 1,
        "values of gen_ai.usage.completion_tokens that are not a number of tokens": 1,
    }


def test_what_a_span_does_not_tell_is_not_there(tmp_path: Path) -> None:
    trace = opened(tmp_path, exported(request(1, 0, 2)))

    assert rows(trace, "lifecycle", "event", "max_tokens") == [("arrive", None), ("finish", None)]


def test_an_id_that_is_used_again_is_one_request_and_said_to_be(tmp_path: Path) -> None:
    again = [request(1, 0, 2), request(1, 5, 7), request(1, 1, 2)]

    trace = opened(tmp_path, exported(*again))

    assert rows(trace, "lifecycle", "event") == ["arrive", "finish"]
    assert report_of(trace).skipped == {USED_AGAIN: 1}


def stage(name: str, begin_s: float, dur_s: float, parent: str) -> Json:
    return span(name, begin_s, dur_s) | {"spanId": f"{name}-{begin_s}", "parentSpanId": parent}


STAGES = (
    stage("prefill_waiting", 0.5, 2, "root"),
    stage("prefill_forward", 2.5, 0.25, "root"),
    stage("prefill_forward", 3, 0.25, "root"),
    stage("decode_forward", 3.25, 4, "scheduler"),
)
"""What SGLang's scheduler writes of a request whose prompt took two steps."""


def of_stages(*stages: Json, **said: Any) -> tuple[Json, ...]:
    root = request(7, 0, 8, gen_ai__usage__completion_tokens=5, **said) | {"spanId": "root"}
    scheduler = span("Scheduler", 0.25, 7) | {"spanId": "scheduler", "parentSpanId": "root"}
    return *stages, scheduler, root


def test_stages_of_a_request_are_its_queue_prefill_and_decode(tmp_path: Path) -> None:
    trace = opened(tmp_path, exported(*of_stages(*STAGES)))

    events = [(event, at - BEGIN) for event, at in rows(trace, "lifecycle", "event", "ts_ns")]
    assert events == [
        ("receive", 0), ("arrive", SECOND // 2), ("admit", 5 * SECOND // 2),
        ("first-token", 13 * SECOND // 4), ("finish", 29 * SECOND // 4), ("deliver", 8 * SECOND),
    ]  # fmt: skip
    spent = {cause.cause.name: cause.total_ns / SECOND for cause in blame(trace).totals()}
    assert spent == {
        "front-end": 0.5, "waiting": 2, "prefill": 0.75, "decode": 4, "delivery": 0.75
    }  # fmt: skip


def test_tokens_that_the_client_got_at_once_are_decoded_and_then_delivered(tmp_path: Path) -> None:
    first = {"gen_ai__latency__time_to_first_token": 7.5, "gen_ai__latency__e2e": 8.0}

    trace = opened(tmp_path, exported(*of_stages(*STAGES, **first)))

    spent = {cause.cause.name: cause.total_ns / SECOND for cause in blame(trace).totals()}
    assert (spent["decode"], spent["delivery"]) == (4, 0.75)


@looped("last", [1, 2, 3])
def test_a_request_that_was_still_in_a_stage_has_only_the_events_before(
    tmp_path: Path, last: int
) -> None:
    root = request(7, 0, 8) | {"spanId": "root"}
    del root["endTimeUnixNano"]

    trace = opened(tmp_path, exported(*STAGES[:last], root))

    events = rows(trace, "lifecycle", "event")
    assert events == ["receive", "arrive", "admit", "first-token"][: 3 if last == 1 else 4]


def test_a_latency_longer_than_the_request_is_not_taken_for_one_of_its_own(tmp_path: Path) -> None:
    trace = opened(tmp_path, exported(request(1, 0, 2, gen_ai__latency__time_in_queue=5.0)))

    assert rows(trace, "lifecycle", "event") == ["arrive", "finish"]


def test_a_span_that_failed_is_a_request_that_ended_in_an_error(tmp_path: Path) -> None:
    failed = request(1, 0, 2) | {"status": {"code": 2, "message": "out of memory"}}

    trace = opened(tmp_path, exported(failed))

    assert rows(trace, "lifecycle", "event", "cause")[-1] == ("error", "out of memory")


@looped(("said", "priority"), [(-3, -3), (1 << 31, None), ("7", 7), (True, None), (1 << 70, None)])
def test_a_priority_may_be_below_0_and_is_unknown_where_no_column_holds_it(
    tmp_path: Path, said: object, priority: int | None
) -> None:
    served = request(1, 0, 2)
    value = {"key": "gen_ai.request.priority", "value": {"intValue": said}}
    served["attributes"] = [*served["attributes"], value]

    trace = opened(tmp_path, exported(served))

    assert rows(trace, "lifecycle", "priority")[0] == priority


def test_of_two_spans_of_a_request_the_one_that_tells_most_is_taken(tmp_path: Path) -> None:
    outer = span("POST /v1", -1, 12, gen_ai__request__id="cmpl-1")

    trace = opened(tmp_path, exported(outer), exported(SERVED))

    assert rows(trace, "lifecycle", "event", "ts_ns")[0] == ("arrive", BEGIN)
    assert trace.num_rows("lifecycle") == 4
    assert trace.num_rows("spans") == 2


def test_spans_lie_on_tracks_of_their_service_and_keep_their_attributes(tmp_path: Path) -> None:
    nested = span("route", 0, 1, tries=3, is_cached=True) | {
        "events": [{"timeUnixNano": str(BEGIN + 5), "name": "retry", "attributes": []}]
    }

    trace = opened(tmp_path, exported(nested, service="router"), exported(span("b", 0, 1)))

    told = rows(trace, "spans", "track", "name", "form", "ts_ns", "dur_ns")
    assert told == [
        ("router / vllm.llm_engine", "route", "async", BEGIN, SECOND),
        ("router / vllm.llm_engine", "retry", "instant", BEGIN + 5, None),
        ("vllm / vllm.llm_engine", "b", "async", BEGIN, SECOND),
    ]
    args = json.loads(rows(trace, "spans", "args")[0])
    assert args == {"tries": 3, "is_cached": True, "traceId": "5b8e", "spanId": "route", "kind": 2}


def test_whose_spans_are_is_found_behind_them_as_well(tmp_path: Path) -> None:
    (first,) = exported(span("a", 0, 1))["resourceSpans"]
    turned = {"resourceSpans": [{"scopeSpans": [{"spans": first["scopeSpans"][0]["spans"],
              "scope": {"name": "late"}}], "resource": first["resource"]}]}  # fmt: skip

    assert rows(opened(tmp_path, turned), "spans", "track") == ["vllm / late"]


def test_objects_where_lists_should_be_cost_no_span(tmp_path: Path) -> None:
    bare = {
        "resourceSpans": {"resource": {}, "scopeSpans": {"scope": {}, "spans": span("a", 0, 1)}}
    }

    assert rows(opened(tmp_path, bare), "spans", "name", "track") == [("a", "service")]


@looped("wrap", [
    lambda spans: {"result": spans}, lambda spans: {"trace": spans},
    lambda spans: {"batches": spans["resourceSpans"]},
    lambda spans: {"trace": {"batches": spans["resourceSpans"]}},
])  # fmt: skip
def test_answers_of_jaeger_and_tempo_hold_the_same_spans(tmp_path: Path, wrap: Any) -> None:
    trace = opened(tmp_path, wrap(exported(SERVED)))

    assert trace.num_rows("lifecycle") == 4
    assert rows(trace, "spans", "track") == ["vllm / vllm.llm_engine"]


@slow
@looped("indent", [None, 2])
@looped("wrap", [
    lambda each: each,
    lambda each: {"result": each},
    lambda each: {"batches": each["resourceSpans"]},
])  # fmt: skip
def test_an_array_of_exports_holds_the_spans_of_all(
    tmp_path: Path, wrap: Any, indent: int | None
) -> None:
    exports = [exported(SERVED), exported(request(2, 1, 4)), exported(request(3, 2, 4))]
    (tmp_path / "array.json").write_text(
        json.dumps([wrap(each) for each in exports], indent=indent)
    )

    trace = Trace.open(tmp_path / "array.json")
    by_line = opened(tmp_path, *(wrap(each) for each in exports))

    assert trace.manifest.closed
    for table in ("lifecycle", "spans"):
        assert trace.table(table).collect().equals(by_line.table(table).collect())


def test_an_array_of_exports_that_is_cut_off_keeps_its_whole_spans(tmp_path: Path) -> None:
    text = json.dumps([exported(SERVED), exported(request(2, 1, 4))])
    first = len(json.dumps(exported(SERVED)))
    for at in (first + 1, first + 200, len(text) - 1):
        (tmp_path / "cut.json").write_text(text[:at])
        trace = Trace.open(tmp_path / "cut.json")
        assert not trace.manifest.closed
        assert "cmpl-1" in trace.lifecycle.collect()["request"]
        assert any("cut off" in note for note in report_of(trace).notes)


def test_metrics_and_logs_among_the_lines_are_no_spans(tmp_path: Path) -> None:
    trace = opened(tmp_path, {"resourceMetrics": [{"a": 1}]}, exported(span("a", 0, 1)))

    assert trace.num_rows("spans") == 1


@looped("odd", [
    {"startTimeUnixNano": "soon"}, {"startTimeUnixNano": -5}, {"startTimeUnixNano": 1 << 62},
    {"startTimeUnixNano": None}, {"startTimeUnixNano": "9" * 5_000},
])  # fmt: skip
def test_a_span_without_a_time_is_counted_and_the_others_are_kept(
    tmp_path: Path, odd: Json
) -> None:
    trace = opened(tmp_path, exported(span("a", 0, 1), span("b", 0, 1) | odd))

    assert rows(trace, "spans", "name") == ["a"]
    assert report_of(trace).skipped == {"spans without a time": 1}


@looped("odd", [
    {"attributes": 5}, {"attributes": [5, {"key": 7}]}, {"events": [3]}, {"events": {"a": 1}},
    {"name": None}, {"endTimeUnixNano": "-1"}, {"status": "bad"},
    {"attributes": [{"key": "gen_ai.request.id", "value": {"stringValue": 5}}]},
])  # fmt: skip
def test_fields_of_other_types_cost_no_span(tmp_path: Path, odd: Json) -> None:
    assert opened(tmp_path, exported(span("a", 0, 1) | odd)).num_rows("spans") == 1


def test_attributes_a_thousand_maps_deep_are_cut(tmp_path: Path) -> None:
    value: Json = {"intValue": 1}
    for _ in range(300):
        value = {"arrayValue": {"values": [value]}}

    trace = opened(
        tmp_path, exported(span("a", 0, 1) | {"attributes": [{"key": "k", "value": value}]})
    )

    assert rows(trace, "spans", "args")[0].count("[") == 32


def test_a_file_cut_off_keeps_its_whole_spans_and_says_so(tmp_path: Path) -> None:
    content = json.dumps(exported(*(span(f"s{n}", n, 1) for n in range(20)))).encode()

    trace = open_bytes(tmp_path, content[: len(content) // 2])

    assert 5 < trace.num_rows("spans") < 15
    assert "cut off after" in report_of(trace).notes[0]
    with pytest.raises(TraceError, match="no span of it can be read: cut off"):
        open_bytes(tmp_path, content[:200])


def test_more_spans_than_the_limit_end_it_with_a_line(tmp_path: Path) -> None:
    trace = opened(tmp_path, exported(*(span(f"s{n}", n, 1) for n in range(20))),
                   limits=Limits(events=5))  # fmt: skip

    assert "--max events=" in report_of(trace).notes[0]


def test_texts_beyond_the_limit_are_counted_not_dropped_in_silence(tmp_path: Path) -> None:
    said = {"attributes": [{"key": "k", "value": {"stringValue": "x" * 90}}]}
    event = {"name": "e", "timeUnixNano": "1000", **said}
    trace = opened(
        tmp_path, exported(span("n" * 90, 0, 1) | said | {"events": [event]}, span("b", 0, 1)),
        limits=Limits(text=64),
    )  # fmt: skip

    assert rows(trace, "spans", "args").count(None) == 2
    assert report_of(trace).repaired == {
        "a name of more than 64 bytes cut (--max text=N raises it)": 1,
        "args of more than 64 bytes left out (--max text=N raises it)": 2,
    }


def test_every_span_of_the_example_is_in_the_tables() -> None:
    file = shared_file("foreign/otlp.json")
    (resource,) = json.loads(file.read_text())["resourceSpans"]
    spans = [each for scoped in resource["scopeSpans"] for each in scoped["spans"]]

    trace = Trace.open(file)

    assert rows(trace, "spans", "name", "ts_ns") == [
        (each["name"], int(each["startTimeUnixNano"])) for each in spans
    ]
    begins = int(spans[0]["startTimeUnixNano"])
    assert rows(trace, "lifecycle", "request", "event", "ts_ns") == [
        ("cmpl-1", "arrive", begins),
        ("cmpl-1", "admit", begins + 1_200_000_000),
        ("cmpl-1", "finish", int(spans[0]["endTimeUnixNano"])),
    ]


LATENCIES = {
    "arrive": None,
    "admit": "gen_ai.latency.time_in_queue",
    "first-token": "gen_ai.latency.time_to_first_token",
    "finish": "gen_ai.latency.e2e",
}
"""Attributes that vLLM gives a request's span, by the event that is as long after its start."""


def recorded_by_the_sdk(num_requests: int) -> list[ReadableSpan]:
    """Record requests as `vllm/tracing` does, each with a span of its route around it."""
    exporter, chance = InMemorySpanExporter(), random.Random(14)
    provider = TracerProvider(resource=Resource({"service.name": "vllm"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("vllm.llm_engine")
    for number in range(num_requests):
        begins = BEGIN + number * SECOND
        seconds = sorted(chance.randrange(1, 5_000) / 1_000 for _ in LATENCIES)[1:]
        route = tracer.start_span("POST /v1/completions", start_time=begins - 1_000)
        served = tracer.start_span(
            "llm_request",
            context=set_span_in_context(route),
            kind=SpanKind.SERVER,
            start_time=begins,
            attributes={
                "gen_ai.request.id": f"cmpl-{number}",
                "gen_ai.request.max_tokens": chance.randrange(1, 900),
                "gen_ai.usage.prompt_tokens": chance.randrange(1, 9_000),
                "gen_ai.usage.completion_tokens": chance.randrange(1, 900),
                **dict(zip(filter(None, LATENCIES.values()), seconds, strict=True)),
            },
        )
        ends = begins + round(max(seconds) * SECOND) + 1_000
        served.add_event("preempted", timestamp=begins + 1)
        served.end(ends)
        route.end(ends + 1_000)
    return list(exporter.get_finished_spans())


def test_spans_that_the_sdk_recorded_are_read_as_it_has_them(tmp_path: Path) -> None:
    recorded = recorded_by_the_sdk(25)
    exported = json_format.MessageToJson(encode_spans(recorded))

    trace = open_bytes(tmp_path, exported.encode(), "spans.json")

    found = rows(trace, "spans", "name", "form", "ts_ns", "dur_ns")
    assert Counter(row for row in found if row[1] == "async") == Counter(
        (each.name, "async", each.start_time, each.end_time - each.start_time)
        for each in recorded if each.start_time and each.end_time
    )  # fmt: skip
    assert [row[:3] for row in found if row[1] == "instant"] == [
        ("preempted", "instant", BEGIN + number * SECOND + 1) for number in range(25)
    ]
    served = [each for each in recorded if each.name == "llm_request"]
    attributes = {
        str(each.attributes["gen_ai.request.id"]): each for each in served if each.attributes
    }
    assert Counter(rows(trace, "lifecycle", "request", "event", "ts_ns")) == Counter(
        (request, event, _event_ns(each, latency))
        for request, each in attributes.items() for event, latency in LATENCIES.items()
    )  # fmt: skip
    counts = trace.lifecycle.group_by("request").agg(
        pl.col("prompt_len", "max_tokens", "num_generated").drop_nulls().first()
    )
    names = ("usage.prompt_tokens", "request.max_tokens", "usage.completion_tokens")
    assert set(counts.collect().rows()) == {
        (request, *((each.attributes or {})[f"gen_ai.{name}"] for name in names))
        for request, each in attributes.items()
    }


def _event_ns(span: ReadableSpan, latency: str | None) -> int:
    assert span.attributes
    assert span.start_time
    seconds = float(str(span.attributes[latency])) if latency else 0.0
    return span.start_time + round(seconds * SECOND)


def test_a_file_of_the_sdk_that_was_cut_off_keeps_the_spans_before_the_cut(tmp_path: Path) -> None:
    recorded = recorded_by_the_sdk(25)
    content = json_format.MessageToJson(encode_spans(recorded)).encode()
    expected = {(each.name, each.start_time) for each in recorded} | {
        ("preempted", BEGIN + number * SECOND + 1) for number in range(25)
    }
    numbers = []

    for tenths in (2, 6, 9):
        trace = open_bytes(tmp_path, content[: len(content) * tenths // 10], f"{tenths}.json")
        found = set(rows(trace, "spans", "name", "ts_ns"))
        assert found <= expected
        assert "cut off after" in report_of(trace).notes[0]
        numbers.append(len(found))

    assert numbers == sorted(numbers)
    assert len(expected) // 2 < numbers[-1] < len(expected)
