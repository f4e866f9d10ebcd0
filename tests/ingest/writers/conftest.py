"""Fixtures of the tests of what is written."""

from __future__ import annotations

import pytest

from tests.ingest.writers.perfetto_engine import Ask, ask_or_skip


@pytest.fixture(scope="session")
def ask() -> Ask:
    """Ask Perfetto's own engine about a file; skips where the engine cannot be run."""
    return ask_or_skip()
