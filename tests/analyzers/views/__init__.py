"""Tests of `analyzers/views/`."""
