"""OTLP in JSON, an object a line, as the file exporter of OpenTelemetry's collector writes it.

The format: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding. Numbers of 64 bits
stand in quotes, ids are hexadecimal digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stepscope.app.otel.telemetry import Attributes, Event, Gauge, Point, Span, Value, some_of
from stepscope.ingest.readers.otlp.names import SCOPE

AT_A_TIME = 1_024
"""Spans of a line."""
SERVER, INTERNAL = 2, 1
ERROR = 2
_encode = msgspec.json.Encoder().encode
Json = dict[str, Any]


def span_lines(spans: Iterable[Span], resource: Attributes, version: str) -> Iterator[bytes]:
    """Spans, some in each line, every one with the resource that they are of."""
    about, scope = {"attributes": _attributes(resource)}, {"name": SCOPE, "version": version}
    for some in some_of(spans, AT_A_TIME):
        scoped = {"scope": scope, "spans": [_span(each) for each in some]}
        yield _encode({"resourceSpans": [{"resource": about, "scopeSpans": [scoped]}]}) + b"\n"


def metric_line(gauges: Iterable[Gauge], resource: Attributes, version: str) -> bytes:
    """Metrics in a line."""
    scoped = {"scope": {"name": SCOPE, "version": version},
              "metrics": [_gauge(each) for each in gauges]}  # fmt: skip
    about = {"attributes": _attributes(resource)}
    return _encode({"resourceMetrics": [{"resource": about, "scopeMetrics": [scoped]}]}) + b"\n"


def _span(span: Span) -> Json:
    said: Json = {"traceId": span.trace_id.hex(), "spanId": span.span_id.hex()}
    if span.parent_id is not None:
        said["parentSpanId"] = span.parent_id.hex()
    said |= {
        "name": span.name,
        "kind": SERVER if span.parent_id is None else INTERNAL,
        "startTimeUnixNano": str(span.begins_ns),
        "endTimeUnixNano": str(span.ends_ns),
        "attributes": _attributes(span.attributes),
    }
    if span.events:
        said["events"] = [_event(each) for each in span.events]
    if span.failed is not None:
        said["status"] = {"code": ERROR, "message": span.failed}
    return said


def _event(event: Event) -> Json:
    said: Json = {"timeUnixNano": str(event.at_ns), "name": event.name}
    return said | ({"attributes": _attributes(event.attributes)} if event.attributes else {})


def _gauge(gauge: Gauge) -> Json:
    points = [_point(each) for each in gauge.points]
    return {"name": gauge.name, "description": gauge.description, "unit": gauge.unit,
            "gauge": {"dataPoints": points}}  # fmt: skip


def _point(point: Point) -> Json:
    return {"attributes": _attributes(point.attributes), "timeUnixNano": str(point.at_ns),
            "asInt": str(point.value)}  # fmt: skip


def _attributes(said: Attributes) -> list[Json]:
    return [{"key": name, "value": _value(value)} for name, value in said.items()]


def _value(value: Value) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}
