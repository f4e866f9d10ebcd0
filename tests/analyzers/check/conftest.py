"""What tests of installed rules share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.analyzers.check.rules_of_others import Install, installing


@pytest.fixture
def install(tmp_path: Path) -> Iterator[Install]:
    """Install a package with a module of rules, as pip would, into a folder on the path."""
    with installing(tmp_path) as installed:
        yield installed
