"""Tests of `analyzers/diff/`."""
