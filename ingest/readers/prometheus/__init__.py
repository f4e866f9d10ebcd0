"""Prometheus metrics over time: successive scrapes, or answers of its query API."""
