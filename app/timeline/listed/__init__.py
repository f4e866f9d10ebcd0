"""Spans one by one, with their labels: for the few that a window shows."""
