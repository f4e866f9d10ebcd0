"""Who can read what a user's folders hold, where the umask forbids nothing."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.app.cli.prompt.typing import history
from stepscope.app.kept import recent
from stepscope.app.web.start.dropped import Dropped
from stepscope.ingest.storage.cache import Cache
from tests.conftest import ROOT


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home in which nothing is, without a umask."""
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path / "home" / "state" / "stepscope"))
    before = os.umask(0)
    yield tmp_path / "home"
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    """Everything below that has a mode for others, the folder as well."""
    return [f"{path} {path.stat().st_mode & 0o777:o}" for path in (folder, *folder.rglob("*"))
            if path.stat().st_mode & 0o077]  # fmt: skip


def test_what_a_user_has_asked_and_opened_is_the_users_alone(folder: Path) -> None:
    recent.opened(ROOT / "README.md")
    history().store_string("break preempt")

    assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == [
        "debug_history", "recent.json",
    ]  # fmt: skip
    assert open_to_others(folder) == []


def test_the_cache_is_the_users_alone_with_all_folders_made_for_it(folder: Path) -> None:
    assert Cache(folder / "cache" / "stepscope").unusable() is None

    assert open_to_others(folder) == []


@pytest.mark.usefixtures("folder")
def test_a_dropped_file_is_the_users_alone() -> None:
    dropped = Dropped(1_000)
    path = dropped.take("a.json", 2, io.BytesIO(b"{}"))

    assert path.parent.stat().st_mode & 0o077 == 0
    dropped.close()
