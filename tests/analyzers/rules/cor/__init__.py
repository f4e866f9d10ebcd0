"""Core groups: which block holds which core."""
