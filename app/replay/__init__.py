"""Starts a replay in the environment of an engine."""
