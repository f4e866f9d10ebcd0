"""A receiver on loopback that decodes what comes with the messages of OpenTelemetry itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf.message import Message
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass(slots=True)
class Answer:
    """What a request is answered with."""

    status: int = 200
    content: bytes = b""
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "x-protobuf"})


@dataclass(slots=True)
class Received:
    """What came, and what is answered in turn; the last answer is given again and again."""

    port: int = 0
    answers: list[Answer] = field(default_factory=lambda: [Answer()])
    spans: list[ExportTraceServiceRequest] = field(default_factory=list)
    metrics: list[ExportMetricsServiceRequest] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def every_span(self) -> list[Span]:
        return [
            span
            for message in self.spans
            for resource in message.resource_spans
            for scoped in resource.scope_spans
            for span in scoped.spans
        ]

    def every_metric(self) -> list[Metric]:
        return [
            metric
            for message in self.metrics
            for resource in message.resource_metrics
            for scoped in resource.scope_metrics
            for metric in scoped.metrics
        ]

    def take(self, path: str, content: bytes, headers: dict[str, str]) -> Answer:
        self.paths.append(path)
        self.headers.append(headers)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer.status == 200:
            message: Message
            if path.endswith("/v1/traces"):
                self.spans.append(message := ExportTraceServiceRequest())
            else:
                assert path.endswith("/v1/metrics")
                self.metrics.append(message := ExportMetricsServiceRequest())
            message.ParseFromString(content)
        return answer


@contextmanager
def receiving(*answers: Answer) -> Iterator[Received]:
    """Listen on a free port of loopback."""
    received = Received(answers=list(answers) or [Answer()])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            answer = received.take(self.path, content, dict(self.headers))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        received.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield received
        finally:
            server.shutdown()
            thread.join()
