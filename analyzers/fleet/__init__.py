"""Thousands of traces: found, read by many processes, checked, and put into an archive as rows."""
