"""Jaeger spans in JSON, from its query API or downloaded from its page."""
