"""Builds vLLM's scheduler without a model, and calls it."""
