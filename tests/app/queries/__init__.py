"""Asking a trace's tables."""
