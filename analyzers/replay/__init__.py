"""Replay on a real scheduler: what it is told, whether it decides the same, what steps cost."""
