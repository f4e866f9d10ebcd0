"""Modules and tests as they lie in folders, and what each imports: late and for types alone, too.

Tests lie as the code does: what tests `ingest/readers/nsys/` is in `tests/ingest/readers/nsys/`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOMS = ("app", "ingest", "analyzers", "engine")
TESTS = "tests"
_KIND = re.compile(r"(test|bench)_(?=.)")
_RULE = re.compile(r"(test_)?[a-z]{3}\d{3}_")
_COMMANDS = "app/cli/commands"


def modules(root: Path) -> dict[str, Path]:
    """The file of each module, by its name."""
    files = (file for room in ROOMS for file in (root / room).rglob("*.py"))
    return {_name(file.relative_to(root)): file for file in files}


def files(root: Path) -> list[Path]:
    """Where each module and each test lies, but for those that are there for their folder."""
    found = (file for room in (*ROOMS, TESTS) for file in (root / room).rglob("*.py"))
    ours = (file.relative_to(root) for file in found if "node_modules" not in file.parts)
    return sorted(file for file in ours if file.stem not in {"__init__", "__main__", "conftest"})


def _name(file: Path) -> str:
    return ".".join(("stepscope", *file.with_suffix("").parts)).removesuffix(".__init__")


def imported(source: str) -> set[str]:
    """The names of all that a source imports anywhere: modules, and what is taken from these."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return found


def imports(found: Mapping[str, Path]) -> dict[str, set[str]]:
    """Which of these modules each of them imports, by itself or by what it takes from it."""
    return {
        name: {
            known if known in found else known.rpartition(".")[0]
            for known in imported(file.read_text())
        }
        & (found.keys() - {name})
        for name, file in found.items()
    }


def rings(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Modules that import each other, directly or through others; those of a ring together."""
    reached = {name: _reached(graph, name) for name in graph}
    found = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in graph
        if name in reached[name]
    }
    return [list(ring) for ring in sorted(found)]


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    left = list(graph[start])
    while left:
        if (name := left.pop()) not in found:
            found.add(name)
            left += graph[name]
    return found


def crowded(root: Path, most: int) -> dict[str, int]:
    """Folders in which more modules or tests lie beside each other, and how many.

    Neither a rule nor a command is one of them, nor the test of one: there are as many as needed.
    """
    lying = Counter(file.parent.as_posix() for file in files(root) if not _is_of_a_seam(file))
    return {folder: num for folder, num in sorted(lying.items()) if num > most}


def _is_of_a_seam(file: Path) -> bool:
    folder = file.parent.as_posix().removeprefix(f"{TESTS}/")
    return bool(_RULE.match(file.stem)) or folder == _COMMANDS


def without_code(root: Path) -> list[str]:
    """Folders of a room's tests that lie where the room has no folder."""
    folders = {file.parent for file in files(root) if file.parts[:1] == (TESTS,)}
    of_rooms = (folder for folder in folders if folder.parts[1:2] and folder.parts[1] in ROOMS)
    lost = (each for each in of_rooms if not (root / each.relative_to(TESTS)).is_dir())
    return sorted(folder.as_posix() for folder in lost)


def same_names(root: Path, explaining: Iterable[str]) -> dict[str, list[str]]:
    """Names of modules that occur in several folders, and where; in `explaining` ones they may."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for file in files(root):
        is_explained = any(file.is_relative_to(folder) for folder in explaining)
        if file.parts[0] != TESTS and not is_explained:
            places[file.stem].append(file.as_posix())
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


def said_twice(root: Path) -> list[str]:
    """Files whose names begin with the name of their folder, behind `test_` or `bench_`."""
    return [file.as_posix() for file in files(root) if _says_its_folder(file)]


def _says_its_folder(file: Path) -> bool:
    name, folder = _KIND.sub("", file.stem, count=1), file.parent.name
    return name == folder or name.startswith(folder + "_")
