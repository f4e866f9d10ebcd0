"""Modules and tests as they lie in folders, and what each imports: late and for types alone, too.

Tests lie as the code does: what tests `ingest/readers/nsys/` is in `tests/ingest/readers/nsys/`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

ROOMS = ("app", "ingest", "analyzers", "engine")
TESTS = "tests"


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


def without_code(root: Path) -> list[str]:
    """Folders of a room's tests that lie where the room has no folder."""
    folders = {file.parent for file in files(root) if file.parts[:1] == (TESTS,)}
    of_rooms = (folder for folder in folders if folder.parts[1:2] and folder.parts[1] in ROOMS)
    lost = (each for each in of_rooms if not (root / each.relative_to(TESTS)).is_dir())
    return sorted(folder.as_posix() for folder in lost)
