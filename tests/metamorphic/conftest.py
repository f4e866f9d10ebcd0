"""Where files are written whose reading is compared with that of many others."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what is read once."""
    return tmp_path_factory.mktemp("as_they_are")
