"""Spans of Jaeger in JSON, as its query API answers and its page downloads them."""
