"""Tests of the reader of a stat logger's JSON lines."""
