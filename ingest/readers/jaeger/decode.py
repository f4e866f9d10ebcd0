"""Convert spans of Jaeger into spans of OTLP.

{"data": [{"traceID", "spans": [{"traceID", "spanID", "operationName",
    "startTime": 1787267980000000, "duration": 2500000,
    "references": [{"refType": "CHILD_OF", "traceID", "spanID"}],
    "tags": [{"key", "type": "string", "value"}], "logs": [{"timestamp", "fields": [...]}],
    "processID": "p1"}], "processes": {"p1": {"serviceName", "tags": [...]}}}]}

Times are in microseconds. The format: jaegertracing/jaeger, `internal/uimodel/model.go`. How Jaeger
stores what only OpenTelemetry has (a status, a scope): the OpenTelemetry specification,
*OpenTelemetry to Jaeger transformation*.
"""

from __future__ import annotations

import math
from typing import Any

from stepscope.ingest.readers.otlp.decode import Json, whole
from stepscope.ingest.readers.profile_tables import LIMIT_NS

DEPTH = 6
"""The depth of nesting at which processes are."""
_ROOTS = ((), ("data",))
"""Paths of traces: a list or a single trace at the root, or `data` of the query API."""
_NS_PER_US = 1_000
_SCOPES = ("otel.scope.name", "otel.library.name")
_NAMES = ("event", "message", "name")
"""Fields that name a log; the first one present counts."""
_FAILED = ("true", "ERROR", True)


def is_record(path: tuple[str, ...]) -> bool:
    """Whether an object at that path is a span, or a process that spans refer to."""
    is_span = path[-1:] == ("spans",) and path[:-1] in _ROOTS
    return is_span or is_process(path)


def is_process(path: tuple[str, ...]) -> bool:
    """Whether an object at that path is a process; its last key is the process's id."""
    return path[-2:-1] == ("processes",) and path[:-2] in _ROOTS


def tags(listed: object) -> dict[str, Any]:
    """Tags by key, as values of their type."""
    pairs = [tag for tag in listed if isinstance(tag, dict)] if isinstance(listed, list) else []
    return {tag["key"]: _typed(tag) for tag in pairs if isinstance(tag.get("key"), str)}


def _typed(tag: Json) -> Any:
    """Return a tag's value; numbers and booleans that were stored as text are converted back."""
    value, kind = tag.get("value"), tag.get("type")
    if not isinstance(value, str):
        return value if isinstance(value, bool | int | float) else None
    if kind == "bool":
        return value == "true"
    if kind == "int64":
        return whole(value)
    if kind == "float64":
        return _number(value)
    return value


def _number(text: str) -> float | None:
    try:
        number = float(text) if len(text) < 64 else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def as_otlp(span: Json) -> tuple[dict[str, Any], str | None]:
    """Return the span in OTLP form, and the name of its scope."""
    said = tags(span.get("tags"))
    begins = _nanoseconds(span.get("startTime"))
    lasts = _nanoseconds(span.get("duration"))
    otlp: dict[str, Any] = {
        "traceId": span.get("traceID"),
        "spanId": span.get("spanID"),
        "name": span.get("operationName"),
        "attributes": [{"key": key, "value": _any_value(value)} for key, value in said.items()],
        "events": [*_events(span.get("logs"))],
    }
    if begins is not None:
        otlp["startTimeUnixNano"] = begins
        if lasts is not None:
            otlp["endTimeUnixNano"] = begins + lasts
    if parent := _parent(span):
        otlp["parentSpanId"] = parent
    if said.get("error") in _FAILED or said.get("otel.status_code") in _FAILED:
        otlp["status"] = {"code": 2, "message": said.get("otel.status_description")}
    scope = next((said[name] for name in _SCOPES if isinstance(said.get(name), str)), None)
    return otlp, scope


def _parent(span: Json) -> str | None:
    """Return the parent span within the same trace; older files name it in the span itself."""
    listed = span.get("references")
    for reference in listed if isinstance(listed, list) else ():
        if isinstance(reference, dict) and reference.get("refType") == "CHILD_OF":
            parent = reference.get("spanID")
            same_trace = reference.get("traceID", span.get("traceID")) == span.get("traceID")
            if isinstance(parent, str) and same_trace:
                return parent
    parent = span.get("parentSpanID")
    return parent if isinstance(parent, str) else None


def _events(logs: object) -> list[dict[str, Any]]:
    return [_event(log) for log in logs] if isinstance(logs, list) else []


def _event(log: object) -> dict[str, Any]:
    """Return a log as an event; one of its fields is the name, and the time may be missing."""
    if not isinstance(log, dict):
        return {}
    fields = tags(log.get("fields"))
    name = next((fields.pop(key) for key in _NAMES if isinstance(fields.get(key), str)), "log")
    attributes = [{"key": key, "value": _any_value(value)} for key, value in fields.items()]
    return {
        "timeUnixNano": _nanoseconds(log.get("timestamp")), "name": name, "attributes": attributes
    }  # fmt: skip


def _any_value(value: object) -> dict[str, object]:
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    return {kinds[type(value)]: value} if type(value) in kinds else {}


def _nanoseconds(value: object) -> int | None:
    """Return microseconds, which may be a string, as nanoseconds."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    number = whole(value)
    is_time = number is not None and 0 <= number < LIMIT_NS // _NS_PER_US
    return number * _NS_PER_US if number is not None and is_time else None
