"""Tests of `engine/workloads/`."""
