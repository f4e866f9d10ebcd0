"""What a record of rocprofv3 says: where and when something ran, and by which numbers it is named.

{"rocprofiler-sdk-tool": [{"metadata": {"pid", ...}, "agents": [{"id": {"handle"}, ...}],
    "strings": {"buffer_records": [{"kind", "operations"}], "marker_api": [{"key", "value"}], ...},
    "kernel_symbols": [{"kernel_id", "formatted_kernel_name", ...}],
    "buffer_records": {"kernel_dispatch": [...], "memory_copy": [...], "hip_api": [...],
                       "marker_api": [...], ...},
    "counters": [{"id": {"handle"}, "name", ...}],
    "callback_records": {"counter_collection": [{"dispatch_data": {"start_timestamp",
        "correlation_id", "dispatch_info"}, "records": [{"counter_id": {"handle"}, "value"}]}]}}]}

There is one such object for each process. The format: rocprofiler-sdk,
`source/lib/output/generateJSON.cpp`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeGuard

import msgspec

from stepscope.ingest.readers.profile_tables import LIMIT_NS

ROOT = "rocprofiler-sdk-tool"
BUFFERS = "buffer_records"
CALLBACKS, COUNTED = "callback_records", "counter_collection"
DISPATCH, COPY, MARKERS = "kernel_dispatch", "memory_copy", "marker_api"
DEPTH = 6
"""So many brackets are around a record at most."""
_ABOUT = {("metadata",), ("agents",), ("kernel_symbols",), ("counters",)}
_LIMIT = 1 << 63
_OWN = {"size", "kind", "operation", "thread_id", "correlation_id", "start_timestamp",
        "end_timestamp", "timestamp", "dispatch_info"}  # fmt: skip
_IN_DISPATCH = {"size", "agent_id", "queue_id", "kernel_id"}
_GPU = 2
Json = Mapping[str, Any]


class Timed(NamedTuple):
    """Something that began and ended; numbers that are not there are null.

    agent   handle of the device that ran it, queue that of its queue
    args    what else the record says, as JSON
    """

    kind: int | None
    operation: int | None
    thread: int | None
    correlation: int | None
    begins: int
    ends: int | None
    agent: int | None
    queue: int | None
    kernel: int | None
    args: str | None


def is_record(path: tuple[str, ...]) -> bool:
    """Whether an object at that path is a record, or says what numbers of records mean."""
    if len(path) < 2 or path[0] != ROOT:
        return False
    return path[1:] in _ABOUT or (len(path) == 3 and path[1] in ("strings", BUFFERS, CALLBACKS))


def decoded(text: bytes) -> Json | None:
    """An object, or None where it is none."""
    try:
        found = msgspec.json.decode(text, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def timed(said: Json) -> Timed | None:
    """What a record says, None where it has no time."""
    begins, ends = number(said.get("start_timestamp")), number(said.get("end_timestamp"))
    if begins is None:
        begins = number(said.get("timestamp"))
    if begins is None or begins >= LIMIT_NS or (ends is not None and ends >= LIMIT_NS):
        return None
    dispatch = part(said, "dispatch_info")
    source, target = (handle(said, name) for name in ("src_agent_id", "dst_agent_id"))
    agent = handle(dispatch, "agent_id")
    others = {name: value for name, value in said.items() if name not in _OWN}
    others |= {name: value for name, value in dispatch.items() if name not in _IN_DISPATCH}
    return Timed(
        number(said.get("kind")),
        number(said.get("operation")),
        number(said.get("thread_id")),
        number(part(said, "correlation_id").get("internal")),
        begins,
        ends,
        agent if agent is not None else target if target is not None else source,
        handle(dispatch, "queue_id"),
        number(dispatch.get("kernel_id")),
        msgspec.json.encode(others).decode() if others else None,
    )


class Counted(NamedTuple):
    """What the counters of a kernel came to, by the handle of each, over all of its instances."""

    correlation: int | None
    begins: int | None
    agent: int | None
    values: dict[int, float]


def counted(said: Json) -> Counted:
    """What a record of counters says; `begins` is null where it does not say when its kernel ran.

    A counter has a value for each instance of what it counts in, an XCC for example: rocprofv3's
    own tables say their sum.
    """
    told = part(said, "dispatch_data")
    begins = number(told.get("start_timestamp"))
    values: dict[int, float] = {}
    listed = said.get("records")
    for each in listed if isinstance(listed, list) else ():
        own = handle(each, "counter_id") if isinstance(each, dict) else None
        value = each.get("value") if own is not None else None
        if own is not None and _is_number(value):
            values[own] = values.get(own, 0.0) + float(value)
    return Counted(
        number(part(told, "correlation_id").get("internal")),
        begins if begins and begins < LIMIT_NS else None,
        handle(part(told, "dispatch_info"), "agent_id"),
        {own: value for own, value in values.items() if math.isfinite(value)},
    )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def gpu_number(agent: Json) -> int | None:
    """The number of a GPU among GPUs; None where an agent is none."""
    if agent.get("type") != _GPU:
        return None
    own = number(agent.get("gpu_index"))
    return own if own is not None else number(agent.get("logical_node_type_id"))


def part(said: Json, name: str) -> Json:
    """An object within one; empty where there is none."""
    found = said.get(name)
    return found if isinstance(found, dict) else {}


def handle(said: Json, name: str) -> int | None:
    """The number in `{"handle": 5}`."""
    return number(part(said, name).get("handle"))


def number(value: object) -> int | None:
    """A whole number from 0 on that a column can hold."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _LIMIT else None
