"""Tests of `analyzers/findings/`."""
