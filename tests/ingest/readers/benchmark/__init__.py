"""Tests of the reader of serving benchmarks' results."""
