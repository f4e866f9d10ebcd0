"""The skill file has a head that assistants read, and every line that it shows runs."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.app.cli.commands.skill import skill_text
from stepscope.app.cli.main import COMMANDS
from tests.app.cli.conftest import Command
from tests.looped import looped
from tests.tiers import slow

STORY = "goto 67\nstate\nprint waiting\nwhy req-07\n"
SHOWN = [
    line
    for block in re.findall(r"```sh\n(.*?)```", skill_text(), re.DOTALL)
    for line in block.splitlines()
]


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stepscope.app", *words],
        cwd=cwd, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, sample_traces: Path) -> Path:
    """A folder with what the lines name."""
    folder = tmp_path_factory.mktemp("skill")
    (folder / "run.trace").symlink_to(sample_traces / "fcfs-preemption-before.trace")
    (folder / "other.trace").symlink_to(sample_traces / "fcfs-preemption-after.trace")
    (folder / "story.txt").write_text(STORY)
    return folder


@slow
@looped("line", SHOWN)
def test_every_line_that_it_shows_runs(
    line: str, place: Path, stepscope: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    program, *words = shlex.split(line)
    assert program == "stepscope"

    ran = stepscope(*words)

    assert ran.code == 0
    assert not ran.err.startswith("stepscope: ")
    assert ran.out
    if "--json" in words or "json" in words:
        assert [json.loads(each) for each in _objects(ran.out, words)]


def _objects(out: str, words: list[str]) -> list[str]:
    return out.splitlines() if words[0] == "debug" else [out]


def test_its_head_names_it_and_says_when_it_is_of_use() -> None:
    head = re.match(
        r"---\nname: ([a-z-]{1,64})\ndescription: (\".{40,1020}\")\n---\n", skill_text()
    )

    assert head
    assert head[1] == "stepscope"
    assert "why a request waited" in json.loads(head[2])


def test_it_is_short_and_names_every_command() -> None:
    text = skill_text()

    assert len(text.splitlines()) < 150
    assert [
        name for name in COMMANDS if f"`{name}`" not in text and f"stepscope {name}" not in text
    ] == []


def test_its_story_is_what_the_debugger_takes() -> None:
    assert all(f"`{line}`" in skill_text() for line in STORY.splitlines())


def test_it_is_written_into_a_folder_of_its_name_and_never_over_another(tmp_path: Path) -> None:
    first = run("skill", "-o", ".claude/skills", cwd=tmp_path)
    again = run("skill", "-o", ".claude/skills", cwd=tmp_path)
    forced = run("skill", "-o", ".claude/skills", "--force", cwd=tmp_path)

    file = tmp_path / ".claude/skills/stepscope/SKILL.md"
    assert (first.returncode, again.returncode, forced.returncode) == (0, 2, 0)
    assert file.read_text(encoding="utf-8") == skill_text()
    assert "it already exists" in again.stderr
    assert run("skill", cwd=tmp_path).stdout == skill_text()


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    ran = run("skill", "-o", "file/inside", cwd=tmp_path)

    assert ran.returncode == 2
    assert len(ran.stderr.splitlines()) == 1
