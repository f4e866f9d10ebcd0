"""Fixtures of the tests of what is kept on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.ingest import opening
from stepscope.ingest.storage.cache import Cache, users_cache
from tests.ingest.kineto_files import one_event


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A cache of the test's own, in which even the smallest file is kept."""
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(opening, "WORTH_BYTES", 0)
    found = users_cache()
    assert found is not None
    return found


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A file of one event."""
    return one_event(tmp_path / "small.json", "a")
