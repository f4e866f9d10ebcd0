"""Tests of `engine/parallel/`."""
