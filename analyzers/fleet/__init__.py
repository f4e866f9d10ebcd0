"""Thousands of traces: found, read by many processes, checked, and kept as rows of an archive."""
