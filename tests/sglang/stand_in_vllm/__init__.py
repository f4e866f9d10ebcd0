"""Stands in for vLLM, of which SGLang takes one kernel where it has none of its own."""
