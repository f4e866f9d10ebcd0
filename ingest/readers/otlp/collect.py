"""Spans of a file with the service and scope that each is of, and what they tell of requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import polars as pl

from stepscope.ingest.limits import Limits, raised_by
from stepscope.ingest.readers.gathered import Rows
from stepscope.ingest.readers.otlp import decode, own
from stepscope.ingest.readers.otlp.decode import RESOURCE, Json, Request, Span
from stepscope.ingest.readers.otlp.own import Origin, OwnRequest
from stepscope.ingest.readers.text.json_records import Record
from stepscope.ingest.readers.text.long_texts import LongTexts

MALFORMED, TIMELESS = "spans that are not objects", "spans without a time"
EVENTS, TIMELESS_EVENTS = "events of spans", "events of spans without a time"
USED_AGAIN = "requests whose id was another's before or after them: one of each id is read"
_COLUMNS: dict[str, type[pl.DataType]] = {
    "resource": pl.Int64, "scope": pl.Int64, "rank": pl.Int32, "name": pl.String, "form": pl.String,
    "ts_ns": pl.Int64, "ends_ns": pl.Int64, "args": pl.String,
}  # fmt: skip
_RESOURCE, _SCOPE = -4, -2
"""Among the numbers of what is around a span, from its own list outwards: those of what says of
which service and scope it is."""
_LAST = -1
"""Of what is around a record that names one: what it names."""


STAGES = ("prefill_waiting", "prefill_forward", "prefill_chunked_forward", "decode_forward")
"""Spans that SGLang's scheduler writes of a request, below the request's own span."""
SpanId = tuple[str, str]
"""The ids of a trace and of a span in it."""


@dataclass(slots=True)
class RequestSpan:
    """The span of a request: its attributes, begin and end, and the stages below it.

    `stages` has the first begin and the last end of the spans of each name.
    """

    request: Request
    begins: int
    ends: int | None
    failed: str | None
    stages: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class Collected:
    """Spans as columns, names of services and scopes by number, requests by name, and counts."""

    limits: Limits
    rows: Rows = field(default_factory=lambda: Rows(_COLUMNS))
    services: dict[int, str] = field(default_factory=dict)
    scopes: dict[int, str] = field(default_factory=dict)
    requests: dict[str, RequestSpan] = field(default_factory=dict)
    own: list[OwnRequest] = field(default_factory=list)
    """Requests that are told event by event, as `stepscope otel` writes them."""
    origins: set[Origin | None] = field(default_factory=set)
    """What each resource says of the trace that it was written from, None where it was none."""
    _stages: list[tuple[SpanId, str, int, int]] = field(default_factory=list)
    _parents: dict[SpanId, SpanId] = field(default_factory=dict)
    _request_of: dict[SpanId, str] = field(default_factory=dict)
    num_foreign: int = 0
    """Spans that `stepscope otel` has not written."""
    read: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    beyond: str | None = None
    texts: LongTexts = field(init=False)

    def __post_init__(self) -> None:
        """Hold texts to the limits."""
        self.texts = LongTexts(self.limits)

    def add_all(self, records: Iterable[Record]) -> None:
        """Take records up to the limit of events."""
        for record in records:
            if record.path[-1] == RESOURCE:
                about = decode.attributes(decode.decoded(record.text) or {})
                self.add_resource(_around(record, _LAST), about)
            elif record.path[-1] == "spans":
                within = _around(record, _RESOURCE), _around(record, _SCOPE)
                self.add_span(decode.decoded(record.text), *within)
            else:
                said = decode.decoded(record.text) or {}
                self.name_scope(_around(record, _LAST), said.get("name"))
            if self.is_full():
                return

    def is_full(self) -> bool:
        """Whether the limit of events is reached; it is noted as the end of what is read."""
        if len(self.rows) <= self.limits.events:
            return False
        self.beyond = f"more than {self.limits.events:,} events ({raised_by('events')})"
        return True

    def add_resource(self, number: int, about: Json) -> None:
        """Take the attributes of a resource: the name of its service, and the trace it is of."""
        self._name(self.services, number, about.get("service.name"))
        self.origins.add(own.origin_of(about))

    def name_scope(self, number: int, name: object) -> None:
        """Take the name of a scope."""
        self._name(self.scopes, number, name)

    def _name(self, names: dict[int, str], number: int, name: object) -> None:
        if isinstance(name, str) and name and len(names) < self.limits.tracks:
            names[number] = self.texts.name(name)

    def add_span(self, said: Json | None, resource: int, scope: int) -> None:
        """Take a span of OTLP, of a resource and a scope by their numbers."""
        span = decode.span_of(said) if said else None
        if said is None or span is None:
            self.skipped[MALFORMED if said is None else TIMELESS] += 1
            return
        self.read["spans"] += 1
        rank = own.rank_of(span.said)
        self.num_foreign += rank is None
        within = resource, scope, rank or 0
        name, args = self.texts.name(span.name), self.texts.args(span.args)
        ends = None if own.is_open(span.said) else span.ends
        self.rows.add((*within, name, "async", span.begins, ends, args))
        self._add_events(within, said)
        if told := own.request_of(said, span.said):
            self._add_own(told)
        elif not own.is_phase(span.said) and (request := decode.request_of(span.said)):
            self._tell(request, span, decode.failure(said))
            self.skipped.update(decode.unread_of(span.said))
            self._request_of[_id(said, "spanId")] = request.name
        else:
            self._add_stage(span, said)

    def _add_stage(self, span: Span, said: Json) -> None:
        """Remember a stage of a request, or what is between one and its request."""
        if len(self._stages) + len(self._parents) >= self.limits.rows:
            return
        parent = _id(said, "parentSpanId")
        if span.name not in STAGES:
            self._parents[_id(said, "spanId")] = parent
        elif span.ends is not None and span.ends >= span.begins:
            self._stages.append((parent, span.name, span.begins, span.ends))

    def add_stages(self) -> None:
        """Give each request the stages whose span is below its own, directly or by one between."""
        for parent, name, begins, ends in self._stages:
            above = parent if parent in self._request_of else self._parents.get(parent)
            request = self.requests.get(self._request_of.get(above, "")) if above else None
            if request is not None:
                first, last = request.stages.get(name, (begins, ends))
                request.stages[name] = min(first, begins), max(last, ends)

    def _add_own(self, told: OwnRequest) -> None:
        """Keep a request that is told event by event."""
        if len(self.own) + len(self.requests) >= self.limits.rows:
            self.skipped[f"requests beyond {self.limits.rows:,} ({raised_by('rows')})"] += 1
            return
        self.own.append(told)
        if told.num_left_out:
            self.skipped[own.LEFT_OUT] += told.num_left_out

    @property
    def origin(self) -> Origin | None:
        """The one trace that all spans are of, as far as `stepscope otel` wrote them; else None."""
        (origin, *others) = self.origins or {None}
        return None if others or self.num_foreign else origin

    def _add_events(self, within: tuple[int, int, int], said: Json) -> None:
        """What happened within a span, as instants."""
        listed = said.get("events")
        for event in listed if isinstance(listed, list) else ():
            ts_ns = (
                decode.nanoseconds(event.get("timeUnixNano")) if isinstance(event, dict) else None
            )
            if not ts_ns:
                self.skipped[TIMELESS_EVENTS] += 1
                continue
            self.read[EVENTS] += 1
            name = self.texts.name(str(event.get("name", "")))
            args = self.texts.args(decode.as_args(decode.attributes(event)))
            self.rows.add((*within, name, "instant", ts_ns, None, args))

    def _tell(self, request: Request, span: Span, failed: str | None) -> None:
        """Keep what is told of a request by the span that tells most of it."""
        known = self.requests.get(request.name)
        if known is not None and _are_apart(known, span):
            self.skipped[USED_AGAIN] += 1
        if known is None and len(self.requests) >= self.limits.rows:
            self.skipped[f"requests beyond {self.limits.rows:,} ({raised_by('rows')})"] += 1
        elif known is None or known.request.num_known < request.num_known:
            self.requests[request.name] = RequestSpan(request, span.begins, span.ends, failed)


def _are_apart(known: RequestSpan, span: Span) -> bool:
    """Whether one had ended before the other began, so that these are two requests."""
    if known.ends is None or span.ends is None:
        return False
    return known.ends < span.begins or span.ends < known.begins


def _id(said: Json, name: str) -> SpanId:
    return str(said.get("traceId", "")), str(said.get(name, ""))


def _around(record: Record, place: int) -> int:
    """A number of what is around a record; 0 where that is not as the format has it."""
    return record.within[place] if -place <= len(record.within) else 0
