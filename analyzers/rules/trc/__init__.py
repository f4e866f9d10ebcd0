"""Traces: how they were recorded."""
