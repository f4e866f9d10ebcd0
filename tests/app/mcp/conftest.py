"""The sample traces as a server has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.mcp.asked import Asked


@pytest.fixture(scope="session")
def samples(sample_traces: Path) -> Asked:
    return Asked(sample_traces)
