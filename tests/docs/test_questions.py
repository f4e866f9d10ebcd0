"""The pages that answer a question about a run show what their commands print."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.command_server import ready_commands
from tests.docs.transcripts import console
from tests.looped import looped
from tests.tiers import slow

PAGES = (
    "why-is-my-request-waiting", "what-did-preemption-cost", "did-the-upgrade-change-my-schedule",
    "debug",
)  # fmt: skip


@pytest.fixture(scope="module")
def commands() -> Iterator[Path]:
    with ready_commands() as folder:
        yield folder


@slow
@looped("page", PAGES)
def test_a_page_shows_what_its_commands_print(page: str, commands: Path, tmp_path: Path) -> None:
    (tmp_path / "sample_traces").symlink_to(ROOT / "sample_traces")
    shown = console((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))

    assert len(shown) >= 3
    for command in shown:
        output = command.run(tmp_path, commands)
        assert command.is_met_by(output), f"$ {command.line}\n{output}"
