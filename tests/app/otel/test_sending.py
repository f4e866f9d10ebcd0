"""Telemetry is sent to the endpoint that is named; whatever is wrong there is told in a line."""

from __future__ import annotations

import socket

import pytest
from google.protobuf.message import Message
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from stepscope.app.otel.endpoint import endpoint_of
from stepscope.app.otel.sdk_objects import Source
from stepscope.app.otel.sending import AT_A_TIME, Sender
from stepscope.app.otel.telemetry import Gauge, Point, Span
from stepscope.ingest.errors import ConfigError, NotSent
from tests.app.otel.receiver import Answer, Received, receiving
from tests.looped import looped

GAUGE = Gauge("stepscope.findings", "", "1", (Point({"stepscope.rule": "STV001"}, 7, 3),))


def spans(number: int) -> list[Span]:
    return [
        Span(bytes([1] * 16), bytes([2] * 8), None, "s", at + 1, at + 2, {}) for at in range(number)
    ]


PATIENCE_S = 60.0


@pytest.fixture
def no_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the SDK give up at once where it would wait a second and try again."""
    monkeypatch.setattr("opentelemetry.exporter.otlp.common.http._MAX_RETRIES", 1)


def sender(endpoint: str, timeout: float = PATIENCE_S) -> Sender:
    return Sender(endpoint_of(endpoint), Source.of({"service.name": "x"}, "1"), timeout)


def refusal(received: Received, number: int = 1) -> str:
    with pytest.raises(NotSent) as refused:
        sender(received.endpoint).spans(spans(number))
    return str(refused.value)


def partial(message: Message) -> Answer:
    return Answer(content=message.SerializeToString())


def test_all_spans_come_some_at_a_time() -> None:
    with receiving() as received:
        assert sender(received.endpoint).spans(spans(AT_A_TIME + 3)) == AT_A_TIME + 3

    assert [len(each.resource_spans[0].scope_spans[0].spans) for each in received.spans] == [
        AT_A_TIME, 3
    ]  # fmt: skip
    assert set(received.paths) == {"/v1/traces"}


@looped("path", ["", "/", "/otlp", "/otlp/v1/traces", "/otlp/v1/metrics/"])
def test_each_kind_has_its_path_below_the_endpoint(path: str) -> None:
    with receiving() as received:
        sender(received.endpoint + path).spans(spans(1))
        sender(received.endpoint + path).metrics([GAUGE])

    below = "/otlp" if "otlp" in path else ""
    assert received.paths == [f"{below}/v1/traces", f"{below}/v1/metrics"]
    assert received.every_metric()[0].gauge.data_points[0].as_int == 3


def test_headers_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20secret")

    with receiving() as received:
        sender(received.endpoint).spans(spans(1))

    assert received.headers[0]["authorization"] == "Bearer secret"


def test_no_proxy_is_asked_for_what_is_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    with receiving() as received:
        assert sender(received.endpoint).spans(spans(1)) == 1


def test_an_endpoint_of_the_environment_alone_is_not_sent_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with receiving() as named, receiving() as other:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", other.endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", other.endpoint)
        sender(named.endpoint).spans(spans(1))

    assert named.spans
    assert not other.paths


@pytest.mark.usefixtures("no_retry")
def test_a_port_where_nobody_listens_is_told() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    with pytest.raises(NotSent, match=r"v1/traces: it cannot be reached: .*refused; start a coll"):
        sender(f"http://127.0.0.1:{port}").spans(spans(1))


@pytest.mark.usefixtures("no_retry")
def test_no_answer_in_time_is_told() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with pytest.raises(NotSent, match="no answer came in time"):
            sender(f"http://127.0.0.1:{mute.getsockname()[1]}", 0.3).spans(spans(1))


@pytest.mark.usefixtures("no_retry")
def test_another_protocol_is_told() -> None:
    secured = r"it cannot be reached: .*(?i:ssl|tls)"
    with receiving() as received, pytest.raises(NotSent, match=secured):
        sender(received.endpoint.replace("http:", "https:")).spans(spans(1))


@pytest.mark.usefixtures("no_retry")
@looped(("answer", "said"), [
    (Answer(404, b"404 page not found", {"Content-Type": "text/plain"}),
     "it answered 404 Not Found: 404 page not found; send what it takes: --only"),
    (Answer(401), "it answered 401 Unauthorized; give what it asks for in OTEL_EXPORTER_OTLP_H"),
    (Answer(400, b'{"message": "bad \x1b[31m"}', {"Content-Type": "application/json"}),
     'it answered 400 Bad Request: {"message": "bad ·[31m"}; see the log of the collector'),
    (Answer(500, b"\x08\x01", {"Content-Type": "application/x-protobuf"}),
     "it answered 500 Internal Server Error; see the log of the collector"),
    (Answer(503), "it answered 503 Service Unavailable; see the log"),
    (Answer(302, headers={"Location": "http://127.0.0.1:9/"}), "it answered 302 Found; see"),
    (Answer(200, b"<html>hello</html>", {"Content-Type": "text/html"}),
     "what it answered is not OTLP, so something else listens there"),
])  # fmt: skip
def test_a_refusal_is_a_line_with_what_the_endpoint_said(answer: Answer, said: str) -> None:
    with receiving(answer) as received:
        line = refusal(received)

    assert said in line
    assert line.startswith(f"{received.endpoint}/v1/traces: ")
    assert "\n" not in line


def test_what_was_rejected_of_a_request_is_told_with_why() -> None:
    message = ExportTraceServiceResponse()
    message.partial_success.rejected_spans = 2
    message.partial_success.error_message = "too old\nby far"

    with receiving(Answer(), partial(message)) as received:
        line = refusal(received, AT_A_TIME + 5)

    assert f"it rejected 2 spans of a request: too old by far, behind {AT_A_TIME} spans" in line


def test_what_was_rejected_of_metrics_is_told() -> None:
    message = ExportMetricsServiceResponse()
    message.partial_success.rejected_data_points = 1

    rejected = "it rejected 1 numbers of metrics of a request"
    with receiving(partial(message)) as received, pytest.raises(NotSent, match=rejected):
        sender(received.endpoint).metrics([GAUGE])


def test_a_warning_that_rejects_nothing_is_no_refusal() -> None:
    message = ExportTraceServiceResponse()
    message.partial_success.error_message = "use gzip"

    with receiving(partial(message)) as received:
        assert sender(received.endpoint).spans(spans(1)) == 1


def test_an_answer_in_json_is_understood() -> None:
    kind = {"Content-Type": "application/json"}
    with receiving(Answer(200, b'{"partialSuccess": {"rejectedSpans": "4"}}', kind)) as received:
        assert "it rejected 4 spans" in refusal(received)


def test_a_collector_that_is_busy_for_a_moment_is_asked_again() -> None:
    busy = Answer(503, headers={"Retry-After": "0.01"})

    with receiving(busy, busy, Answer()) as received:
        assert sender(received.endpoint).spans(spans(1)) == 1

    assert len(received.paths) == 3


@looped("text", [
    "", "127.0.0.1:4318", "localhost", "grpc://h:4317", "http://", "http://h:no", "http://h:70000",
    "file:///etc/passwd", "http://h/?a=1", "http://h/#a", "http://h\n", "http://a b/", "http://[::",
])  # fmt: skip
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        endpoint_of(text)


def test_credentials_in_an_endpoint_are_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match="credentials") as refused:
        endpoint_of("http://me:secret@h:4318")

    assert "secret" not in str(refused.value)


@looped(("host", "is_loopback"), [
    ("127.0.0.1", True), ("localhost", True), ("[::1]", True), ("collector", False),
    ("10.0.0.1", False), ("127.0.0.1.example.com", False),
])  # fmt: skip
def test_it_is_known_which_endpoints_are_of_this_machine(host: str, is_loopback: bool) -> None:
    assert endpoint_of(f"http://{host}:4318").is_loopback is is_loopback
