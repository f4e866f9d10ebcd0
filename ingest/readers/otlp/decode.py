"""What a span of OpenTelemetry says, and what its attributes tell of a request.

{"resourceSpans": [{"resource": {"attributes": [{"key": "service.name", "value": {...}}]},
    "scopeSpans": [{"scope": {"name"}, "spans": [{"traceId", "spanId", "parentSpanId", "name",
        "startTimeUnixNano": "1787267980000000000", "endTimeUnixNano", "attributes", "events",
        "status": {"code"}}]}]}]}

The format: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding; attributes of requests
as vLLM (`vllm/tracing`) and SGLang (`sglang/srt/tracing`) write them: `gen_ai.*`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from stepscope.ingest.readers.profile_tables import LIMIT_NS

ROOT = "resourceSpans"
TEMPO_ROOT = "batches"
"""What Tempo's first API calls it. Answers of query APIs may wrap either in one more object:
`{"result": ...}` of Jaeger's, `{"trace": ...}` of Tempo's second."""
SCOPES = ("scopeSpans", "instrumentationLibrarySpans")
"""The second is what the first was called before 2022."""
RESOURCE = "resource"
DEPTH = 9
"""So many brackets are around a span of an array of wrapped exports."""
ERROR = (2, "STATUS_CODE_ERROR")
_SCOPE_NAMES = ("scope", "instrumentationLibrary")
_VALUES = ("stringValue", "intValue", "doubleValue", "boolValue", "bytesValue")
_SPAN_FIELDS = ("traceId", "spanId", "parentSpanId", "kind", "status", "traceState")
_LATENCIES = (
    "gen_ai.latency.time_in_queue", "gen_ai.latency.time_to_first_token", "gen_ai.latency.e2e",
)  # fmt: skip
_COUNTS = (
    "gen_ai.usage.prompt_tokens", "gen_ai.usage.input_tokens", "gen_ai.request.max_tokens",
    "gen_ai.usage.completion_tokens", "gen_ai.usage.output_tokens",
)  # fmt: skip
_NUMBER = re.compile(
    r"\s*\+?(?:\d{1,32}(?:\.\d{0,32})?|\.\d{1,32})(?:[eE][+-]?\d{1,3})?\s*", re.ASCII
)
_NS_PER_S = 10**9
_LAST_S = 1 << 32
_MOST_TOKENS = 1 << 48
_PRIORITIES = range(-(1 << 31), 1 << 31)
_DEEPEST = 32
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """A span: times in nanoseconds since 1970; `args` are its attributes and ids, as JSON."""

    name: str
    begins: int
    ends: int | None
    args: str
    said: Json


class Request(NamedTuple):
    """What a span tells of a request: how long after its begin what happened; null: not told."""

    name: str
    queued_ns: int | None
    first_token_ns: int | None
    took_ns: int | None
    prompt_len: int | None
    max_tokens: int | None
    num_generated: int | None
    priority: int | None

    @property
    def num_known(self) -> int:
        """How much of it is told."""
        return sum(value is not None for value in self)


def is_record(path: tuple[str, ...]) -> bool:
    """Whether an object at that path is a span, or says whose the spans beside it are."""
    path = path[_num_wrappers(path) :]
    if len(path) == 2 and path[0] in (ROOT, TEMPO_ROOT) and path[1] == RESOURCE:
        return True
    is_within = len(path) == 3 and path[0] in (ROOT, TEMPO_ROOT) and path[1] in SCOPES
    return is_within and path[2] in ("spans", *_SCOPE_NAMES)


def _num_wrappers(path: tuple[str, ...]) -> int:
    return int(len(path) > 1 and path[0] not in (ROOT, TEMPO_ROOT))


def decoded(text: bytes) -> Json | None:
    """An object, or None where it is none."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def attributes(said: Json) -> dict[str, Any]:
    """Attributes by key, as plain values."""
    listed = said.get("attributes")
    pairs = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return {
        each["key"]: _plain(each.get("value"), _DEEPEST)
        for each in pairs
        if isinstance(each.get("key"), str)
    }


def _plain(value: object, deepest: int) -> Any:
    """What `{"intValue": "5"}` holds, lists and maps up to a depth."""
    if not isinstance(value, dict) or not deepest:
        return None
    if "intValue" in value:
        number = whole(value["intValue"])
        return value["intValue"] if number is None else number
    if isinstance(listed := _part(value, "arrayValue").get("values"), list):
        return [_plain(each, deepest - 1) for each in listed]
    if isinstance(listed := _part(value, "kvlistValue").get("values"), list):
        pairs = [each for each in listed if isinstance(each, dict)]
        return {str(each.get("key")): _plain(each.get("value"), deepest - 1) for each in pairs}
    return next((value[name] for name in _VALUES if name in value), None)


def span_of(said: Json) -> Span | None:
    """What a span says, None where it has no time."""
    begins, ends = (
        nanoseconds(said.get("startTimeUnixNano")),
        nanoseconds(said.get("endTimeUnixNano")),
    )
    if not begins:
        return None
    args = attributes(said)
    ids = {name: said[name] for name in _SPAN_FIELDS if name in said}
    name = said.get("name")
    shown = name if isinstance(name, str) else "(no name)"
    return Span(shown, begins, ends or None, as_args({**args, **ids}), args)


def as_args(said: Json) -> str:
    """Attributes as an object in JSON."""
    return msgspec.json.encode(said).decode()


def request_of(said: Json) -> Request | None:
    """What attributes tell of a request, None where they name none."""
    name = said.get("gen_ai.request.id")
    if not isinstance(name, str) or not name:
        return None
    queued_ns, first_token_ns, took_ns = (_duration(said, key) for key in _LATENCIES)
    return Request(
        name,
        queued_ns,
        first_token_ns,
        took_ns,
        _tokens(said, "gen_ai.usage.prompt_tokens", "gen_ai.usage.input_tokens"),
        _tokens(said, "gen_ai.request.max_tokens"),
        _tokens(said, "gen_ai.usage.completion_tokens", "gen_ai.usage.output_tokens"),
        _priority(said),
    )


def failure(said: Json) -> str | None:
    """Why a span failed, as its status says; None where it does not say that it did."""
    status = _part(said, "status")
    if status.get("code") not in ERROR:
        return None
    message = status.get("message")
    return message if isinstance(message, str) and message else "error"


def whole(value: object) -> int | None:
    """A whole number, which may stand in quotes as 64 bits do."""
    if (
        isinstance(value, str)
        and len(value) < 21
        and value.removeprefix("-").isdecimal()
        and value.isascii()
    ):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -(1 << 63) <= value < 1 << 63 else None


def nanoseconds(value: object) -> int | None:
    """A time in nanoseconds since 1970."""
    number = whole(value)
    return number if number is not None and 0 <= number < LIMIT_NS else None


def unread_of(said: Json) -> Iterator[str]:
    """What is said of each value of a request that is there and cannot be read."""
    for key in _LATENCIES:
        if said.get(key) is not None and _duration(said, key) is None:
            yield f"values of {key} that are not a number of seconds"
    for key in _COUNTS:
        if said.get(key) is not None and _tokens(said, key) is None:
            yield f"values of {key} that are not a number of tokens"


def _duration(said: Json, key: str) -> int | None:
    """Seconds as nanoseconds; they may stand in quotes."""
    value = said.get(key)
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    is_known = math.isfinite(value) and 0 <= value < _LAST_S
    return round(value * _NS_PER_S) if is_known else None


def _tokens(said: Json, *keys: str) -> int | None:
    numbers = (whole(said.get(key)) for key in keys)
    return next((each for each in numbers if each is not None and 0 <= each < _MOST_TOKENS), None)


def _priority(said: Json) -> int | None:
    number = whole(said.get("gen_ai.request.priority"))
    return number if number is not None and number in _PRIORITIES else None


def _part(said: Json, name: str) -> Json:
    found = said.get(name)
    return found if isinstance(found, dict) else {}
