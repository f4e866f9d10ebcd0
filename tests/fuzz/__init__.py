"""Readers fed with bytes that nobody wrote: `python -m tests.fuzz kineto --seconds 60`."""
