"""Chains from who waits to the root."""
