"""What tests of installed rules share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.analyzers.check.registry import of_others
from stepscope.ingest.entry_points import tell_once
from tests.analyzers.check.rules_of_others import Install
from tests.packages import write_package


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a package with a module of rules, as pip would, into a folder on the path."""
    made = []

    def installed(package: str, source: str, *points: str) -> Path:
        points = points or (f"one = {package.replace('-', '_')}:SlowStep",)
        made.append(write_package(tmp_path, package, source, "stepscope.rules", *points))
        of_others.cache_clear()
        return tmp_path

    monkeypatch.syspath_prepend(str(tmp_path))
    yield installed
    of_others.cache_clear()
    tell_once.cache_clear()
    for module in made:
        sys.modules.pop(module, None)
