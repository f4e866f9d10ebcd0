"""Tests of the reader of Prometheus' metrics."""
