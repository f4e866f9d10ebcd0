"""Telemetry is sent by the official exporters over HTTP, and what an endpoint answers is looked at.

They take any answer below 400 for a success, a redirect among them, and do not look at how much of
a request was rejected. So the session that they send with keeps the last answer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import requests
from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from stepscope.app.otel.endpoint import GRPC_PORT, METRICS, SPANS, Endpoint
from stepscope.app.otel.sdk_objects import Source
from stepscope.app.otel.telemetry import Gauge, Span, some_of
from stepscope.app.printable import plain
from stepscope.ingest.errors import NotSent

AT_A_TIME = 512
"""Spans of a request, as the SDK's own processor has it."""
_MOST_OF_AN_ANSWER = 300
_TODO = {
    401: "give what it asks for in OTEL_EXPORTER_OTLP_HEADERS, as Authorization=Bearer%20TOKEN",
    403: "give what it asks for in OTEL_EXPORTER_OTLP_HEADERS, as Authorization=Bearer%20TOKEN",
    404: "send what it takes: --only spans, or --only metrics",
    413: "let it take more: it was sent 512 spans at a time",
}


class _Session(requests.Session):
    """Sends as usual, and keeps what came back, or why nothing did."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__()
        self.trust_env = not endpoint.is_loopback  # no proxy is asked for what is on this machine
        self.answer: requests.Response | None = None
        self.failure: Exception | None = None

    def request(self, *given: Any, **options: Any) -> requests.Response:
        """Send a request."""
        self.answer = self.failure = None
        try:
            self.answer = super().request(*given, **options)
        except Exception as error:
            self.failure = error
            raise
        return self.answer


class Sender:
    """Sends to an endpoint; `timeout` is in seconds, for each request with all its tries."""

    def __init__(self, endpoint: Endpoint, source: Source, timeout: float | None = None) -> None:
        self._endpoint = endpoint
        self._source = source
        self._timeout = timeout

    def spans(self, spans: Iterable[Span]) -> int:
        """Send spans, some at a time, and count them. Raises NotSent."""
        session = _Session(self._endpoint)
        address, num_sent = self._endpoint.of(SPANS), 0
        exporter = OTLPSpanExporter(address, timeout=self._timeout, session=session)
        with _quietly(exporter):
            for some in some_of(spans, AT_A_TIME):
                session.answer = session.failure = None
                exporter.export([self._source.span(each) for each in some])
                self._refuse(session, address, ExportTraceServiceResponse(), num_sent)
                num_sent += len(some)
        return num_sent

    def metrics(self, gauges: Iterable[Gauge]) -> None:
        """Send metrics. Raises NotSent."""
        session = _Session(self._endpoint)
        address = self._endpoint.of(METRICS)
        exporter = OTLPMetricExporter(address, timeout=self._timeout, session=session)
        with _quietly(exporter):
            exporter.export(self._source.metrics(gauges))
            self._refuse(session, address, ExportMetricsServiceResponse(), 0)

    def _refuse(self, session: _Session, address: str, message: Message, num_before: int) -> None:
        """Raise NotSent unless all of a request was taken."""
        behind = f", behind {num_before:,} spans that it took" if num_before else ""
        answer = session.answer
        if answer is None:
            what = f"it cannot be reached{behind}: {_why(session.failure)}"
            raise NotSent(what, where=address, todo=self._todo())
        if not 200 <= answer.status_code < 300:
            raise NotSent(
                f"it answered {answer.status_code} {plain(answer.reason or '')}{behind}"
                f"{_said(answer)}",
                where=address, todo=_TODO.get(answer.status_code, "see the log of the collector"),
            )  # fmt: skip
        if rejected := _rejected(answer, message):
            raise NotSent(f"{rejected}{behind}", where=address, todo="see the log of the collector")

    def _todo(self) -> str:
        if self._endpoint.port == GRPC_PORT:
            return f"{GRPC_PORT} is the port for gRPC: name that for HTTP, which is 4318 by default"
        return "start a collector there that takes OTLP over HTTP, or write a file: -o FILE"


def _why(failure: Exception | None) -> str:
    """What is at the bottom of a failure, in few words."""
    found: BaseException | None = failure
    if isinstance(failure, requests.exceptions.Timeout):
        return "no answer came in time (--timeout)"
    while found is not None and (below := found.__cause__ or found.__context__) is not None:
        found = below
    said = str(found).rpartition("] ")[2] if found is not None else "nothing was sent"
    return plain(said.partition("\n")[0])[:_MOST_OF_AN_ANSWER] or type(found).__name__


def _said(answer: requests.Response) -> str:
    """What an endpoint said of its refusal, where that is text."""
    kind = answer.headers.get("content-type", "")
    if "text/" not in kind and "json" not in kind:
        return ""
    text = answer.content[:_MOST_OF_AN_ANSWER].decode("utf-8", "replace")
    line = " ".join(text.split())
    return f": {plain(line)}" if line else ""


def _rejected(answer: requests.Response, message: Message) -> str:
    """How much of a request was rejected, and why; empty where all was taken."""
    kind = answer.headers.get("content-type", "")
    try:
        if "json" in kind:
            json_format.Parse(answer.content, message, ignore_unknown_fields=True)
        else:
            message.ParseFromString(answer.content)
    except (DecodeError, json_format.ParseError, UnicodeDecodeError):
        return "what it answered is not OTLP, so something else listens there"
    partial = message.partial_success
    is_of_spans = hasattr(partial, "rejected_spans")
    number = partial.rejected_spans if is_of_spans else partial.rejected_data_points
    if not number:
        return ""
    why = plain(" ".join(partial.error_message.split()))[:_MOST_OF_AN_ANSWER]
    what = "spans" if is_of_spans else "numbers of metrics"
    return f"it rejected {number:,} {what} of a request" + (f": {why}" if why else "")


@contextmanager
def _quietly(exporter: OTLPSpanExporter | OTLPMetricExporter) -> Iterator[None]:
    """Without the exporter's own lines: what went wrong is said once, by us."""
    logger = logging.getLogger("opentelemetry.exporter")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)
        exporter.shutdown()
