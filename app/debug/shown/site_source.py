"""The source at a site, where this stepscope has the very source that ran, and else why not."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from stepscope.engine import sites
from stepscope.engine.sites import Function, InFunction, Site, digest_of, functions_in

AROUND = 4
_PACKAGE = Path(sites.__file__).parent.parent
# What a trace names is looked for in this package alone, and never above it.
_FILE = re.compile(r"(?:[a-z_]\w*/)*[a-z_]\w*\.py", re.ASCII | re.IGNORECASE)


class Place(NamedTuple):
    """A line of a file on this machine, in a function of the policy."""

    file: Path
    called: str
    function: str
    line: int

    def around(self, num: int = AROUND) -> Iterator[tuple[int, str]]:
        """Lines around it by their numbers, so many before and behind."""
        lines, _ = _source_of(self.file)
        first = max(self.line - num, 1)
        yield from enumerate(lines[first - 1 : self.line + num], start=first)


class AtHand(NamedTuple):
    """Where the functions of a site are here, outermost first; none, and why, if they are not."""

    places: tuple[Place, ...]
    why_not: str = ""


def at_hand(text: str) -> AtHand:
    """Find a site's source in this package; it is at hand where its digest is that of the site."""
    site = Site.read(text)
    if site is None:
        return AtHand((), "it names no function of a file")
    if site.digest is None:
        return AtHand((), "it was recorded without its source, which cannot be compared")
    for each in site.functions:
        if not _FILE.fullmatch(each.file) or not (_PACKAGE / each.file).is_file():
            return AtHand((), f"{each.file} is no file of this stepscope")
    found = [_function_at(each) for each in site.functions]
    if digest_of(found) != site.digest:
        return AtHand((), "the source that ran is not the one of this stepscope")
    places = tuple(
        Place((_PACKAGE / each.file).resolve(), each.file, each.name, known.first + each.line)
        for each, known in zip(site.functions, found, strict=True)
        if known is not None and each.line <= known.text.count("\n")
    )
    if len(places) < len(found):
        return AtHand((), "it names a line behind the end of a function")
    return AtHand(places)


def stack_text(places: Sequence[Place]) -> str:
    """Functions from the outermost in with the lines of their files, such as `schedule:121`."""
    files = [None, *(place.called for place in places)]
    parts = (
        f"{'' if file == place.called else f'{place.called}: '}{place.function}:{place.line}"
        for file, place in zip(files, places, strict=False)
    )
    return " > ".join(parts)


def in_short(text: str) -> str:
    """A site without lines and digest: `schedule > _decode`; a text that is none as it is."""
    site = Site.read(text)
    return text if site is None else " > ".join(each.name for each in site.functions)


def _function_at(place: InFunction) -> Function | None:
    """The function of that name, with its class or without where there is one such."""
    _, functions = _source_of(_PACKAGE / place.file)
    named = place.name.rpartition(".")[2]
    alike = [each for name, each in functions.items() if name.rpartition(".")[2] == named]
    exact = [each for each in alike if each.name == place.name]
    return next(iter(exact or alike), None)


def _source_of(file: Path) -> tuple[list[str], dict[str, Function]]:
    try:
        return _read(file, file.stat().st_mtime_ns)
    except OSError:
        return [], {}


@lru_cache
def _read(file: Path, _changed_ns: int) -> tuple[list[str], dict[str, Function]]:
    try:
        with tokenize.open(file) as opened:
            text = opened.read()
        return text.split("\n"), functions_in(text)
    except (SyntaxError, ValueError):
        return [], {}
