"""Our modules as they lie in folders, and what each imports: late and for types alone, too."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOMS = ("app", "ingest", "analyzers", "engine")
_RULE = re.compile(r"[a-z]{3}\d{3}_")
_COMMANDS = "app/cli/commands"


def modules(root: Path) -> dict[str, Path]:
    """The file of each module, by its name."""
    files = (file for room in ROOMS for file in (root / room).rglob("*.py"))
    return {_name(file.relative_to(root)): file for file in files}


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
    """Folders in which more modules lie beside each other, and how many.

    Neither __init__ nor a rule nor a command is one of them: of these there are as many as needed.
    """
    files = (file.relative_to(root) for file in modules(root).values())
    beside = (file for file in files if file.stem != "__init__" and not _is_of_a_seam(file))
    lying = Counter(file.parent.as_posix() for file in beside)
    return {folder: num for folder, num in sorted(lying.items()) if num > most}


def _is_of_a_seam(file: Path) -> bool:
    return bool(_RULE.match(file.stem)) or file.parent.as_posix() == _COMMANDS


def same_names(root: Path, explaining: Iterable[str]) -> dict[str, list[str]]:
    """File names that occur in several folders, and where; those in `explaining` ones aside."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted(file.relative_to(root) for file in modules(root).values()):
        is_explained = any(file.is_relative_to(folder) for folder in explaining)
        if file.stem not in {"__init__", "__main__"} and not is_explained:
            places[file.stem].append(file.as_posix())
    return {name: files for name, files in sorted(places.items()) if len(files) > 1}


def said_twice(root: Path) -> list[str]:
    """Files whose names begin with the name of their folder."""
    return sorted(
        file.relative_to(root).as_posix()
        for file in modules(root).values()
        if file.stem == file.parent.name or file.stem.startswith(file.parent.name + "_")
    )
