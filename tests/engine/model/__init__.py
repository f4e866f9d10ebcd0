"""Tests of `engine/model/`."""
