"""Tests of `engine/requests/`."""
