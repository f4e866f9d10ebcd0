"""Measurements over time in CSV."""
