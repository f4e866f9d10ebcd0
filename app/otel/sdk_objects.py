"""Spans and metrics as the official SDK's exporters take them.

A run that is over is told, so no tracer is asked to make them: its times and ids are the run's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from opentelemetry.sdk.metrics.export import (
    Gauge as SdkGauge,
)
from opentelemetry.sdk.metrics.export import (
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event as SdkEvent
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from stepscope.app.otel.telemetry import Attributes, Event, Gauge, Span
from stepscope.ingest.readers.otlp.names import SCOPE


@dataclass(frozen=True, slots=True)
class Source:
    """Whose telemetry it is, and which version of stepscope made it."""

    resource: Resource
    scope: InstrumentationScope

    @classmethod
    def of(cls, resource: Attributes, version: str) -> Source:
        """The source that has these attributes and no others."""
        return cls(Resource(dict(resource)), InstrumentationScope(SCOPE, version))

    def span(self, span: Span) -> ReadableSpan:
        """A span of it."""
        failed = Status(StatusCode.ERROR, span.failed) if span.failed is not None else Status()
        parent = None if span.parent_id is None else _context(span.trace_id, span.parent_id)
        return ReadableSpan(
            span.name,
            context=_context(span.trace_id, span.span_id),
            parent=parent,
            resource=self.resource,
            attributes=dict(span.attributes),
            events=[_event(each) for each in span.events],
            kind=SpanKind.SERVER if parent is None else SpanKind.INTERNAL,
            status=failed,
            start_time=span.begins_ns,
            end_time=span.ends_ns,
            instrumentation_scope=self.scope,
        )

    def metrics(self, gauges: Iterable[Gauge]) -> MetricsData:
        """Metrics of it."""
        metrics = [_metric(gauge) for gauge in gauges]
        scoped = ScopeMetrics(self.scope, metrics, self.scope.schema_url or "")
        return MetricsData([ResourceMetrics(self.resource, [scoped], self.resource.schema_url)])


def _context(trace_id: bytes, span_id: bytes) -> SpanContext:
    numbers = int.from_bytes(trace_id), int.from_bytes(span_id)
    return SpanContext(*numbers, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _event(event: Event) -> SdkEvent:
    return SdkEvent(event.name, dict(event.attributes), event.at_ns)


def _metric(gauge: Gauge) -> Metric:
    points = [
        NumberDataPoint(dict(each.attributes), 0, each.at_ns, each.value) for each in gauge.points
    ]
    return Metric(gauge.name, gauge.description, gauge.unit, SdkGauge(points))
