"""Lanes by kind: what the rows of each table look like as spans of time."""
