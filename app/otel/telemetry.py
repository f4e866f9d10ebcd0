"""What is said of a trace in OpenTelemetry's terms, before it is JSON or messages of the SDK.

Times are nanoseconds since 1970. A value that is not recorded has no attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

Value = str | bool | int | float
Attributes = Mapping[str, Value]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Event:
    """What happened within a span, at one moment."""

    name: str
    at_ns: int
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class Span:
    """A span. `trace_id` has 16 bytes, ids of spans have 8; `failed` is why it did, if it did."""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes | None
    name: str
    begins_ns: int
    ends_ns: int
    attributes: Attributes
    events: tuple[Event, ...] = ()
    failed: str | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """A number of a metric, for one combination of its attributes."""

    attributes: Attributes
    at_ns: int
    value: int


@dataclass(frozen=True, slots=True)
class Gauge:
    """A metric whose numbers are what they are at a moment."""

    name: str
    description: str
    unit: str
    points: tuple[Point, ...]


def some_of(every: Iterable[T], number: int) -> Iterator[list[T]]:
    """So many at a time."""
    left = iter(every)
    while some := list(islice(left, number)):
        yield some
