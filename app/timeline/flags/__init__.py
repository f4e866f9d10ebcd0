"""Flags on the timeline: where they stand, and going from one to the next."""
