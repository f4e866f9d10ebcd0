"""Tests of `app/present/inspected/`."""
