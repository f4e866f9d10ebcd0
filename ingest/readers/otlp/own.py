"""What `stepscope otel` wrote, read again: every event of a request, as it was told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from stepscope.ingest.columns import Type
from stepscope.ingest.manifest import CLOCKS, ClockInfo
from stepscope.ingest.readers.otlp import names
from stepscope.ingest.readers.otlp.decode import Json, attributes, nanoseconds, whole
from stepscope.ingest.schema import LIFECYCLE, LIFECYCLE_EVENTS

LEFT_OUT = "events of requests that are none of a lifecycle"
_BITS = {Type.I32: 31, Type.I64: 63}
_TOLD = ("complete", "inferred", "partial", "ordered")
_COLUMNS = {
    f"{names.PREFIX}{column.name}": column
    for column in LIFECYCLE.columns
    if column.name not in ("rank", "ts_ns", "request", "event")
}
_RANKS = range(1 << 31)
Row = dict[str, Any]


class Origin(NamedTuple):
    """What a resource says of the trace that was written: its clock, and how much there was."""

    kind: str
    epoch_ns: int
    zero_ns: int
    told: str
    closed: bool
    num_requests: int
    producer: str
    version: str

    @property
    def clock(self) -> ClockInfo:
        """The clock that the trace was on."""
        return ClockInfo(self.kind, self.epoch_ns)


@dataclass(frozen=True, slots=True)
class OwnRequest:
    """What a span tells of a request: its events as rows of `lifecycle`, on the file's clock."""

    rank: int
    rows: tuple[Row, ...]
    num_left_out: int
    is_whole: bool
    """Whether no event of it was dropped on the way."""


def rank_of(said: Json) -> int | None:
    """The rank, of a span that is ours."""
    rank = whole(said.get(names.RANK))
    return rank if rank is not None and rank in _RANKS else None


def is_phase(said: Json) -> bool:
    """Whether the span is of a phase, whose request another span tells of."""
    return names.PHASE in said


def is_open(said: Json) -> bool:
    """Whether what the span is of had not ended."""
    return said.get(names.IS_OPEN) is True


def request_of(span: Json, said: Json) -> OwnRequest | None:
    """The request that a span of ours is of; None of a phase, and of all other spans."""
    rank, request = rank_of(said), said.get(names.REQUEST)
    if rank is None or is_phase(said) or not isinstance(request, str):
        return None
    listed = span.get("events")
    events = listed if isinstance(listed, list) else []
    rows = [{"rank": rank, "request": request, **row} for row in _rows(events)]
    if not rows:
        return None
    is_whole = whole(span.get("droppedEventsCount", 0)) == 0
    return OwnRequest(rank, tuple(rows), len(events) - len(rows), is_whole)


def _rows(events: list[Any]) -> Iterator[Row]:
    for event in events:
        if not isinstance(event, dict) or event.get("name") not in LIFECYCLE_EVENTS:
            continue
        ts_ns = nanoseconds(event.get("timeUnixNano"))
        if ts_ns:
            yield {"event": event["name"], "ts_ns": ts_ns, **_told(attributes(event))}


def _told(said: Mapping[str, Any]) -> Row:
    """Columns of the table, of values that they can hold."""
    told: Row = {}
    for name, column in _COLUMNS.items():
        value = said.get(name)
        if column.type in _BITS:
            value = whole(value)
            if value is not None and -(1 << _BITS[column.type]) <= value < 1 << _BITS[column.type]:
                told[column.name] = value
        elif isinstance(value, bool if column.type is Type.BOOL else str):
            told[column.name] = value
    return told


def origin_of(said: Json) -> Origin | None:
    """What a resource of ours says; None of others."""
    kind, told = said.get(names.CLOCK), said.get(names.TOLD)
    epoch_ns, zero_ns = whole(said.get(names.EPOCH)), whole(said.get(names.ZERO))
    number = whole(said.get(names.NUM_REQUESTS))
    if kind not in CLOCKS or told not in _TOLD or None in (epoch_ns, zero_ns, number):
        return None
    producer, version = (said.get(f"service.{name}") for name in ("name", "version"))
    return Origin(
        kind, epoch_ns or 0, zero_ns or 0, told, said.get(names.CLOSED) is True, number or 0,
        producer if isinstance(producer, str) else "", version if isinstance(version, str) else "",
    )  # fmt: skip
