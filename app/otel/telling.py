"""All that is told of a trace, spans and metrics, and how it comes to a file or an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from stepscope.app.otel.endpoint import Endpoint
from stepscope.app.otel.findings import gauges_of
from stepscope.app.otel.laid_out import LaidOut
from stepscope.app.otel.otlp_json import metric_line, span_lines
from stepscope.app.otel.request_spans import requests_of, spans_of
from stepscope.app.otel.telemetry import Attributes, Gauge, Span
from stepscope.ingest.errors import MissingExtra
from stepscope.ingest.readers.otlp.names import NUM_REQUESTS
from stepscope.ingest.trace import Trace
from stepscope.ingest.writers.shown import draft

if TYPE_CHECKING:
    from stepscope.analyzers.check.run import CheckResult

SPANS, METRICS = "spans", "metrics"
Check = Callable[[Trace], "CheckResult"]


@dataclass(frozen=True)
class Told:
    """What is told of a trace: spans, metrics or both, as `kinds` say."""

    trace: Trace
    laid: LaidOut
    kinds: tuple[str, ...]
    check: Check
    version: str

    @cached_property
    def requests(self) -> pl.DataFrame:
        """A row for each request."""
        return requests_of(self.trace, self.laid)

    @cached_property
    def resource(self) -> Attributes:
        """What is said of the trace itself."""
        if SPANS not in self.kinds:
            return self.laid.resource
        return {**self.laid.resource, NUM_REQUESTS: len(self.requests)}

    def spans(self) -> Iterator[Span]:
        """The spans; none where these are not asked for."""
        if SPANS in self.kinds:
            yield from spans_of(self.requests, self.laid)

    def gauges(self) -> tuple[Gauge, ...]:
        """The metrics; none where these are not asked for."""
        return gauges_of(self.check(self.trace), self.laid) if METRICS in self.kinds else ()


def write(told: Told, out: Path) -> int:
    """Write a file, whole or not at all, and count its spans; the same trace gives the same bytes.

    Gzipped where its name ends in `.gz`. Raises WriteError.
    """
    num_spans = 0

    def counted() -> Iterator[Span]:
        nonlocal num_spans
        for span in told.spans():
            num_spans += 1
            yield span

    gauges = told.gauges()
    with draft(out) as file:
        for line in span_lines(counted(), told.resource, told.version):
            file.write(line)
        if gauges:
            file.write(metric_line(gauges, told.resource, told.version))
    return num_spans


def send(told: Told, endpoint: Endpoint, timeout: float | None) -> int:
    """Send it, and count the spans. Raises NotSent, and MissingExtra where there is no SDK."""
    try:
        from stepscope.app.otel.sdk_objects import Source  # noqa: PLC0415 - it is an extra
        from stepscope.app.otel.sending import Sender  # noqa: PLC0415 - the same
    except ImportError as missing:
        todo = "pip install 'stepscope[otel]', or write a file: -o FILE"
        raise MissingExtra("sending needs OpenTelemetry's SDK", todo=todo) from missing
    sender = Sender(endpoint, Source.of(told.resource, told.version), timeout)
    gauges = told.gauges()
    num_spans = sender.spans(told.spans())
    if gauges:
        sender.metrics(gauges)
    return num_spans
