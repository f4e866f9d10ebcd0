"""Tests of `analyzers/latency/`."""
