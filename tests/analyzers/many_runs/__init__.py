"""Tests of `analyzers/summary/`."""
