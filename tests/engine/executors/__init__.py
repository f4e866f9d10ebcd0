"""Tests of `engine/executors/`."""
