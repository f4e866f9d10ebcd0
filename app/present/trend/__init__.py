"""Metrics over many runs: as text, as Markdown, and for programs."""
