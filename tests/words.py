"""Words that are gone, as `docs/glossary.md` lists them, and where one is still used.

A word is a part of a name (`num_kept`, `numKept`) or of a text, with or without a plural's s; what
is quoted from others (lines that begin with `>`, and `docs/seeds.md`) says it in their words.
"""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.conftest import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
HEADING = "## Words that are gone"
SEARCHED = (
    ".py", ".pyi", ".js", ".mjs", ".css", ".tcss", ".md", ".toml", ".yml", ".yaml", ".c", ".h",
    ".sh", "Makefile",
)  # fmt: skip
QUOTING = ("docs/seeds.md", "tests/words.py", "tests/test_words.py")
"""What says such words because it speaks of them, or in the words of others."""
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_NAME = re.compile(r"[A-Za-z_$][\w$]*")


@dataclass(frozen=True, slots=True)
class Gone:
    """A word that is not used, what is said in its place, and where it still may be.

    It is gone from names alone, or from every text. It is looked for in `folders`; `spared` are
    texts that keep it: values that are recorded, and words of other programs.
    """

    word: str
    instead: str
    names_alone: bool
    folders: tuple[str, ...]
    spared: tuple[str, ...]

    def uses(self, path: str, text: str) -> list[str]:
        """The places, as `path:line`, at which it is still used."""
        if not path.startswith(self.folders) or not self._may_be_in(path + text):
            return []
        names = self.names_alone
        stands = _in_names(path, text) if names else enumerate(text.splitlines(), 1)
        return sorted({f"{path}:{at}" for at, said in stands if self._is_in(said)})

    def _may_be_in(self, said: str) -> bool:
        """Whether its letters are there at all: most texts have not even them."""
        return self.word.lower().partition(" ")[0] in said.lower()

    def _is_in(self, said: str) -> bool:
        if not self._may_be_in(said):
            return False
        for each in self.spared:
            said = said.replace(each, "")
        parts = " ".join(_PART.findall(said)).lower()
        return re.search(rf"\b{self.word.lower()}s?\b", parts) is not None


def gone(page: str) -> list[Gone]:
    """Read the table of the glossary: the word, what to say, where it is gone from."""
    rows = re.findall(
        r"^\| ([^|`]+?) \| ([^|]+?) \| ([^|]+?) \|$", page.partition(HEADING)[2], re.MULTILINE
    )
    return [_gone(*row) for row in rows if row[0] not in {"Not this", "---"}]


def _gone(word: str, instead: str, where: str) -> Gone:
    place, _, but = where.partition(" but ")
    kind, _, folders = place.partition(" of ")
    assert kind in {"texts", "names"}, f"{word}: {where!r} is neither of texts nor of names"
    return Gone(word, instead, kind == "names", _quoted(folders) or ("",), _quoted(but))


def _quoted(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", text))


@cache
def _in_names(path: str, text: str) -> tuple[tuple[int, str], ...]:
    """The names in a file and its own, with the line of each: once for all words."""
    return tuple({*_names(path, text)})


def _names(path: str, text: str) -> Iterator[tuple[int, str]]:
    yield 0, Path(path).stem
    if path.endswith((".py", ".pyi")):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME:
                yield token.start[0], token.string
    elif path.endswith((".js", ".css", ".tcss")):
        for at, line in enumerate(text.splitlines(), 1):
            yield from ((at, name) for name in _NAME.findall(line))


@cache
def sources() -> dict[str, str]:
    """What is searched: our files by their paths, without what they quote."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\n")  # fmt: skip
    paths = [path for path in listed if path.endswith(SEARCHED) and path not in QUOTING]
    return {path: _own_words(path) for path in paths if (ROOT / path).is_file()}


def _own_words(path: str) -> str:
    text = (ROOT / path).read_text("utf-8")
    if ROOT / path == GLOSSARY:
        text = text.partition(HEADING)[0]
    return "\n".join("" if line.startswith("> ") else line for line in text.splitlines())


def still_used(word: Gone, texts: Iterable[tuple[str, str]]) -> list[str]:
    """Every place at which a word that is gone is still used."""
    return [use for path, text in texts for use in word.uses(path, text)]
