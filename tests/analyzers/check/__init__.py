"""Tests of `analyzers/check/`."""
