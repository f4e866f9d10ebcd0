"""Profiles and recordings of one run."""
