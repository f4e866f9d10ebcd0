"""Metrics of Prometheus over time: scrapes one after the other, or answers of its query API."""
