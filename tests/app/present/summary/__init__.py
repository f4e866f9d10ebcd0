"""Tests of `app/present/summary/`."""
