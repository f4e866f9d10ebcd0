"""Logs of inference engines."""
