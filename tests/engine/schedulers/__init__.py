"""Tests of `engine/schedulers/`."""
