"""Tests of `engine/serving/`."""
