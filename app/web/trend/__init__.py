"""Metrics over many runs as a page that stands by itself."""
