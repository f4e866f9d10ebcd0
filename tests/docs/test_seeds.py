"""The page of the five reports says what the commands on it print."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.command_server import ready_commands
from tests.docs.transcripts import Command, Entry, entries
from tests.looped import looped
from tests.tiers import sampled, slow

ENTRIES = entries((ROOT / "docs" / "seeds.md").read_text(encoding="utf-8"))
NOT_HERE = "**Not on a simulated device.**"
NUM_TOGETHER = 3


def parts() -> dict[str, list[Entry]]:
    """Some entries of one report each, by their first and last number."""
    found = {}
    for _, of_report in groupby(ENTRIES, key=lambda entry: entry.number.partition(".")[0]):
        listed = list(of_report)
        for at in range(0, len(listed), NUM_TOGETHER):
            part = listed[at : at + NUM_TOGETHER]
            found[f"{part[0].number} to {part[-1].number}"] = part
    return found


PARTS = parts()
QUICK = ["000.1 to 000.3", "004.1 to 004.3"]
"""Of a report on the device and of one on the batch; scenarios are tested by themselves as well."""


@dataclass
class Shell:
    """Runs entries, each in a folder of its own; a command that several begin with runs once."""

    commands: Path
    folder: Path
    begun: dict[str, tuple[Path, str]] = field(default_factory=dict)

    def outputs(self, entry: Entry) -> Iterator[tuple[Command, str]]:
        """Each command of an entry with what it printed."""
        first, *others = entry.commands
        if first.line not in self.begun:
            empty = self.folder / f"begun-{entry.number}"
            empty.mkdir()
            self.begun[first.line] = empty, first.run(empty, self.commands)
        begun, printed = self.begun[first.line]
        yield first, printed
        folder = self.folder / entry.number
        shutil.copytree(begun, folder)
        for command in others:
            yield command, command.run(folder, self.commands)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with ready_commands() as commands:
        yield Shell(commands, tmp_path_factory.mktemp("entries"))


@slow
@pytest.mark.parametrize("part", sampled(PARTS, QUICK))
def test_each_command_prints_what_the_page_shows(part: str, shell: Shell) -> None:
    others = [
        f"{entry.number}$ {command.line}\n{printed}"
        for entry in PARTS[part]
        if entry.commands
        for command, printed in shell.outputs(entry)
        if not command.is_met_by(printed)
    ]

    assert not others, "\n".join(others)


@looped("entry", ENTRIES, ids=lambda entry: entry.number)
def test_each_entry_quotes_the_report_and_shows_it_or_says_why_not(entry: Entry) -> None:
    assert "\n> " in entry.text
    assert NOT_HERE in entry.text or any(_tells(command) for command in entry.commands)


@slow
def test_entries_are_numbered_in_order_without_gaps() -> None:
    for one, other in pairwise(ENTRIES):
        report, number = one.number.split(".")
        later, first = other.number.split(".")
        follows = later == report and int(first) == int(number) + 1
        assert follows or (later > report and first == "1")


def _tells(command: Command) -> bool:
    return any(line.strip(". ") for line in command.printed.splitlines())


@looped(
    ("printed", "output", "met"),
    [
        ("a 1\nb 2", "a 1\nb 2", True),
        ("a 1\nb 2", "a 1\nb 3", False),
        ("...\nb 2", "a 1\nb 2", True),
        ("...\nb 2\n...", "b 2", True),
        ("...\nb 2\n...", "a\nbb 2\nc", False),
        ("a ... c", "a b c", True),
        ("a ... c", "a b\nd c", False),
        ("", "", True),
        ("", "a", False),
        ("a.b", "a-b", False),
    ],
)
def test_dots_stand_for_lines_or_for_a_part_of_one(printed: str, output: str, met: bool) -> None:
    assert Command("", printed).is_met_by(output) is met
