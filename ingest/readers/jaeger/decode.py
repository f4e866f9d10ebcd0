"""A span of Jaeger as a span of OTLP.

{"data": [{"traceID", "spans": [{"traceID", "spanID", "operationName",
    "startTime": 1787267980000000, "duration": 2500000,
    "references": [{"refType": "CHILD_OF", "traceID", "spanID"}],
    "tags": [{"key", "type": "string", "value"}], "logs": [{"timestamp", "fields": [...]}],
    "processID": "p1"}], "processes": {"p1": {"serviceName", "tags": [...]}}}]}

Times are in microseconds. The format: jaegertracing/jaeger, `internal/uimodel/model.go`; how it
writes what OpenTelemetry has and it has not (a status, a scope): the OpenTelemetry specification,
*OpenTelemetry to Jaeger transformation*.
"""

from __future__ import annotations

import math
from typing import Any

from stepscope.ingest.readers.otlp.decode import Json, whole
from stepscope.ingest.readers.profile_tables import LIMIT_NS

DEPTH = 6
"""So many brackets are around a process."""
_ROOTS = ((), ("data",))
"""Where traces are: in a list, in the answer of the query API, or one alone."""
_NS_PER_US = 1_000
_SCOPES = ("otel.scope.name", "otel.library.name")
_NAMES = ("event", "message", "name")
"""Fields of a log that name it, the first of them that is there."""
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
    """A tag's value; what stores wrote as text is made a number or a truth value again."""
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
    """The same span as OTLP has it, and the name of its scope."""
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
    """The span that it is a child of, within its trace; older files name it in the span itself."""
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
    """A log as an event, of which a field has the name; without a time where it has none."""
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
    """Microseconds, which may stand in quotes, as nanoseconds."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    number = whole(value)
    is_time = number is not None and 0 <= number < LIMIT_NS // _NS_PER_US
    return number * _NS_PER_US if number is not None and is_time else None
