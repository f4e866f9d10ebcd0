"""Tests of `engine/runs/`."""
