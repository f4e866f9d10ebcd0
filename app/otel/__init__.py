"""A trace as OpenTelemetry: its requests as spans, its findings as metrics."""
