"""The README says what is true, on one page: its code runs, its commands exist and run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.analyzers.check.registry import FAMILIES
from stepscope.app.cli.main import COMMANDS
from tests.conftest import ROOT
from tests.docs.command_server import ready_commands
from tests.docs.transcripts import Command

README = (ROOT / "README.md").read_text(encoding="utf-8")
OPEN_A_SCREEN = ("tui", "web")


def blocks(language: str) -> str:
    return "\n".join(re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL))


def lines() -> list[str]:
    told = (line.partition("  #")[0].strip() for line in blocks("sh").splitlines())
    return [line for line in told if line.startswith("stepscope ")]


@pytest.fixture(scope="module")
def commands() -> Iterator[Path]:
    with ready_commands() as folder:
        yield folder


def test_it_is_read_in_one_go() -> None:
    assert len(README.splitlines()) <= 100


def test_its_commands_run_one_after_another_and_its_python_on_what_they_made(
    commands: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sample_traces").symlink_to(ROOT / "sample_traces")
    run = [line for line in lines() if line.split()[1] not in OPEN_A_SCREEN]

    for line in run:
        said = Command(line + " || echo FAILED", "").run(tmp_path, commands)
        assert "FAILED" not in said, f"$ {line}\n{said}"

    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {}
    exec(blocks("python"), space)  # noqa: S102 - the README's own code
    assert getattr(space["worst"], "code", None) == "STV001"


def test_what_opens_a_screen_is_a_command() -> None:
    named = {line.split()[1] for line in lines()}

    assert {"tui", "web", "info", "check"} <= named <= set(COMMANDS)


def test_it_lists_every_family_of_rules() -> None:
    assert tuple(re.findall(r"^\| \[([A-Z]{3})\]\(", README, flags=re.MULTILINE)) == FAMILIES


def test_it_says_what_a_core_group_is_before_it_says_mix_of_anything_else() -> None:
    prose = re.sub(r"!\[.*?\]\(.*?\)", "", README)

    first = min(prose.index(word) for word in ("MIX", "AIC", "AIV"))
    explained = prose.index("one cube core (*AIC*")
    assert prose.index("**core groups**") < explained <= first


def test_every_make_target_that_it_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"make (\w+)", blocks("sh")))

    assert targets == {"demo", "test"}
    targets |= set(re.findall(r"`make (\w+)`", README))
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)
