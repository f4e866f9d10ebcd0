"""Tests of `engine/faults/`."""
