"""Tests of `engine/device/`."""
