"""Feeds a recorded run to a real scheduler, in the environment of its engine."""
