"""A patch that adds one thing, put together as CONTRIBUTING's section says, and laid over a tree.

The line goes into the tuple that the section names, wherever that stands by now.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import ROOT

PAGE = "CONTRIBUTING.md"
_TUPLE = re.compile(r"One line in `([A-Z]+)` in `([\w/.]+)`")


@dataclass(frozen=True, slots=True)
class Patch:
    """What adds one thing.

    `file` is the new one; `line` that of the tuple, which may need an import, `needs`. `document`
    is a file, what the line above begins with, and the line. `runs` are the tests that it is tried
    on, its own `tests` beside them.
    """

    section: str
    file: str
    source: str
    line: str
    needs: str = ""
    tests: Mapping[str, str] = field(default_factory=dict)
    document: tuple[str, str, str] | None = None
    runs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What it adds: the last word of the section's heading."""
        return self.section.rpartition(" ")[2]

    def section_text(self) -> str:
        """What CONTRIBUTING says of it."""
        text = (ROOT / PAGE).read_text("utf-8")
        _, found, rest = text.partition(f"## {self.section}\n")
        assert found, f"{PAGE} has no section {self.section!r}"
        return rest.partition("\n## ")[0]

    def seam(self) -> tuple[str, str]:
        """The tuple that CONTRIBUTING names, and its file."""
        found = _TUPLE.search(self.section_text())
        assert found, f"{self.section!r} names no tuple"
        return found[1], found[2]

    def changed(self) -> dict[str, str]:
        """The files that it writes, and what is in them."""
        seam, file = self.seam()
        text = with_line((ROOT / file).read_text("utf-8"), seam, self.line)
        files = {file: with_import(text, self.needs), self.file: self.source, **self.tests}
        for each in (self.file, *self.tests):
            package = Path(each).parent / "__init__.py"
            if not (ROOT / package).exists():
                files[package.as_posix()] = '"""A package for what is in it."""\n'
        if self.document:
            page, above, line = self.document
            files[page] = below((ROOT / page).read_text("utf-8"), above, line)
        return files


def with_line(text: str, name: str, line: str) -> str:
    """Put a line at the end of the tuple or the mapping of that name."""
    lines = text.splitlines()
    first = next(at for at, each in enumerate(lines) if re.match(rf"{name}\b.*= [({{]$", each))
    last = next(at for at in range(first, len(lines)) if lines[at] in {")", "}"})
    return "\n".join([*lines[:last], f"    {line}", *lines[last:], ""])


def with_import(text: str, line: str) -> str:
    """Put an import where it is in order."""
    if not line:
        return text
    lines = text.splitlines()
    imports = [at for at, each in enumerate(lines) if each.startswith("from stepscope.")]
    at = next((at for at in imports if lines[at] > line), imports[-1] + 1)
    return "\n".join([*lines[:at], line, *lines[at:], ""])


def below(text: str, above: str, line: str) -> str:
    """Put a line under the one that begins so."""
    lines = text.splitlines()
    (at,) = (at for at, each in enumerate(lines) if each.startswith(above))
    return "\n".join([*lines[: at + 1], line, *lines[at + 1 :], ""])
