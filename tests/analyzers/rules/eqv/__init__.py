"""Equivalence: outputs beside those of the same request alone."""
