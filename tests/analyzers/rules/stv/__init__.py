"""Starvation: who waits, for how long, and for what."""
