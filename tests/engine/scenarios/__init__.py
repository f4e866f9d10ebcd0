"""Tests of `engine/scenarios/`."""
