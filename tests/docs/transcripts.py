"""Console transcripts in a page: which commands it shows, and whether they still print that.

    python -m tests.docs.transcripts docs/seeds.md 004

prints what the commands of the entries whose number begins so print now.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from tests.docs.command_server import ready_commands

_HEADING = re.compile(r"^### (\d{3}\.\d+) (.+)$", flags=re.MULTILINE)
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Command:
    """A line after `$ `, and the text that stands below it; `...` in it stands for anything."""

    line: str
    printed: str

    def run(self, folder: Path, commands: Path) -> str:
        """Return what the line prints in `folder`, errors as well, without blanks at line ends.

        A command is looked for in `commands` first, then beside this Python.
        """
        scripts = sysconfig.get_path("scripts")
        path = os.pathsep.join((str(commands), scripts, os.environ.get("PATH", os.defpath)))
        done = subprocess.run(
            ["sh", "-c", self.line],
            cwd=folder,
            env={**os.environ, "PATH": path, "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=_SECONDS,
            check=False,
        )
        return _tidy(done.stdout)

    def is_met_by(self, output: str) -> bool:
        """Say whether `output` is what stands on the page, `...` standing for anything."""
        return _pattern(self.printed).fullmatch(output + "\n") is not None


@dataclass(frozen=True, slots=True)
class Entry:
    """A numbered entry of a page: its text, and the commands of its transcripts in order."""

    number: str
    title: str
    text: str
    commands: tuple[Command, ...]


def entries(page: str) -> list[Entry]:
    """Return the entries of `page`, each from its `### NNN.M` heading to the next heading."""
    found = list(_HEADING.finditer(page))
    ends = [heading.start() for heading in found[1:]]
    return [
        _entry(heading[1], heading[2], page[heading.end() : end].split("\n## ", maxsplit=1)[0])
        for heading, end in zip_longest(found, ends)
    ]


def _entry(number: str, title: str, text: str) -> Entry:
    return Entry(number, title, text, tuple(console(text)))


def console(text: str) -> list[Command]:
    """Return the commands of all transcripts in `text`, in order."""
    return [command for block in _CONSOLE.findall(text) for command in _commands(block)]


def _commands(block: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, printed = part.partition("\n")
        while line.endswith("\\"):
            more, _, printed = printed.partition("\n")
            line = line[:-1] + more
        yield Command(line, _tidy(printed))


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


def _pattern(printed: str) -> re.Pattern[str]:
    lines = printed.split("\n")
    parts = [r"(?:.*\n)*?" if line == "..." else _line(line) + "\n" for line in lines]
    return re.compile("".join(parts))


def _line(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.split("..."))


def main(page: str, begins: str = "") -> None:
    """Print what the commands of the entries whose number begins with `begins` print now."""
    with ready_commands() as commands:
        for entry in entries(Path(page).read_text(encoding="utf-8")):
            if entry.number.startswith(begins):
                _print_again(entry, commands)


def _print_again(entry: Entry, commands: Path) -> None:
    _tell(f"### {entry.number} {entry.title}")
    with tempfile.TemporaryDirectory() as folder:
        for command in entry.commands:
            output = command.run(Path(folder), commands)
            same = "" if command.is_met_by(output) else "   <- not as on the page"
            _tell(f"$ {command.line}{same}\n{output}")


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
