"""Spans of OpenTelemetry in JSON (OTLP), as collectors write them."""
