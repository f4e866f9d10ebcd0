"""Tests of rules, by family."""
