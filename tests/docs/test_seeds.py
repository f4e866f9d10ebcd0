"""The page of the five reports says what the commands on it print."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.command_server import ready_commands
from tests.docs.transcripts import Command, Entry, entries

ENTRIES = entries((ROOT / "docs" / "seeds.md").read_text(encoding="utf-8"))
NOT_HERE = "**Not on a simulated device.**"


@pytest.fixture(scope="module")
def commands() -> Iterator[Path]:
    with ready_commands() as folder:
        yield folder


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.number)
def test_each_command_prints_what_the_page_shows(
    entry: Entry, tmp_path: Path, commands: Path
) -> None:
    for command in entry.commands:
        output = command.run(tmp_path, commands)
        assert command.is_met_by(output), f"$ {command.line}\n{output}"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.number)
def test_each_entry_quotes_the_report_and_shows_it_or_says_why_not(entry: Entry) -> None:
    assert "\n> " in entry.text
    assert NOT_HERE in entry.text or any(_tells(command) for command in entry.commands)


def test_entries_are_numbered_in_order_without_gaps() -> None:
    for one, other in pairwise(ENTRIES):
        report, number = one.number.split(".")
        later, first = other.number.split(".")
        follows = later == report and int(first) == int(number) + 1
        assert follows or (later > report and first == "1")


def _tells(command: Command) -> bool:
    return any(line.strip(". ") for line in command.printed.splitlines())


@pytest.mark.parametrize(
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
