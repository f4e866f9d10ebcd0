"""Looks at an engine in a Python without importing it; runs by itself, in that Python.

    python probe.py <<< '{"package": "vllm", "distributions": ["vllm"], "allowed": "VLLM_PLUGINS",
        "plugins": "vllm.general_plugins", "names": ["module:Class.method(parameter, another)"]}'

It reads JSON on stdin and prints JSON: versions, the plug-in that the engine would load, and which
of the names are there, with all those parameters. Only the standard library, as nothing else may
be installed.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PLUGIN = "stepscope"


def look(asked: dict[str, Any]) -> dict[str, Any]:
    """What this Python has, and of each `module:Class.method(parameters)` whether it is there."""
    folder = _folder(asked["package"])
    points = metadata.entry_points(group=asked["plugins"])
    return {
        "executable": sys.executable,
        "python": sys.version.partition(" ")[0],
        "folder": str(folder) if folder else None,
        "version": _version(*asked["distributions"]),
        "stepscope": _version("stepscope"),
        "has_plugin": any(each.name == PLUGIN for each in points),
        "allowed": os.environ.get(asked["allowed"]),
        "found": {name: _has(name) for name in asked["names"]},
    }


def _folder(package: str) -> Path | None:
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


def _version(*names: str) -> str | None:
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def _has(name: str) -> bool:
    function, _, takes = name.rstrip(")").partition("(")
    module, _, path = function.partition(":")
    package, *inside = module.split(".")
    folder = _folder(package)
    if folder is None:
        return False
    within = folder.joinpath(*inside)
    for file in (within.with_suffix(".py"), within / "__init__.py"):
        if file.is_file():
            return _defines(file, path.split("."), takes.split(", ") if takes else [])
    return False


def _defines(file: Path, path: list[str], takes: list[str]) -> bool:
    """Whether a module has a class, the class a method, and this such parameters; by the text of
    the file alone.
    """
    try:
        found: Any = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    for name in path:
        body = getattr(found, "body", [])
        found = next((each for each in body if getattr(each, "name", None) == name), None)
        if found is None:
            return False
    return _parameters(found).issuperset(takes)


def _parameters(function: Any) -> set[str]:
    takes = getattr(function, "args", None)
    if takes is None:
        return set()
    return {each.arg for each in (*takes.posonlyargs, *takes.args, *takes.kwonlyargs)}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(look(json.load(sys.stdin))))
