"""Tests of the reader of Jaeger's spans."""
