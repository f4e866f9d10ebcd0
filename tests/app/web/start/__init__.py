"""Tests of the page from which a trace is opened."""
