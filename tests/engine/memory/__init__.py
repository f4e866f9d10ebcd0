"""Tests of `engine/memory/`."""
