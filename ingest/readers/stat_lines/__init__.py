"""Statistics of vLLM's scheduler, as JSON lines of a stat logger."""
