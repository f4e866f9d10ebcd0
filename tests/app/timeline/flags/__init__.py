"""Tests of flags on the timeline."""
