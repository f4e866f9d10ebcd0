"""Widgets that pages are built of: tables, prose, charts, lines of text."""
