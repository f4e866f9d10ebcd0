"""Records of what vLLM's scheduler says of itself, as JSON lines of a stat logger."""
