"""The page's own modules as one script: a page that is opened from a disk may import no file.

A module becomes a function that gives what it exports. It is read by lines, as our modules are
written: every import on one line, and what is exported named where it is defined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

ASSETS = Path(__file__).parents[1] / "assets"
OWN = Path(__file__).with_name("assets")
STAND_INS = {"dash.js": "plates.js", "pictures.js": "plates.js", "address.js": "places.js"}
"""What answers in a report, by the module whose place it takes: there is no server to ask."""

_IMPORT = re.compile(r'^import (?P<what>\* as \w+|\{[^}]*\}) from "\./(?P<file>[\w.-]+)";$')
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const) (?P<name>\w+))")


def script() -> str:
    """Everything that a report runs."""
    return bundled("report.js", (OWN, ASSETS), STAND_INS)


def bundled(entry: str, folders: tuple[Path, ...], stand_ins: Mapping[str, str]) -> str:
    """Join `entry` and all that it imports, each before whoever imports it.

    Raises ValueError where a module is not written as ours are, imports what nobody exports, or
    imports itself by way of others.
    """
    exported: dict[str, list[str]] = {}
    parts: list[str] = []

    def add(file: str, above: tuple[str, ...]) -> None:
        if file in above:
            raise ValueError(f"{' imports '.join((*above, file))}")
        if file in exported:
            return
        lines = _source(file, folders).splitlines()
        imports = {at: _imported(line, stand_ins) for at, line in enumerate(lines)}
        for found in imports.values():
            if found:
                add(found[1], (*above, file))
        names: list[str] = []
        body = [
            _bound(file, *imported, exported) if (imported := imports[at]) else _body(line, names)
            for at, line in enumerate(lines)
        ]
        exported[file] = names
        given = f"return {{ {', '.join(names)} }};"
        parts.append("\n".join([f"const {_variable(file)} = (() => {{", *body, given, "})();"]))

    add(entry, ())
    return "\n".join(['"use strict";', *parts, ""])


def _source(file: str, folders: tuple[Path, ...]) -> str:
    found = next((folder / file for folder in folders if (folder / file).is_file()), None)
    if found is None:
        raise ValueError(f"there is no {file}")
    text = found.read_text("utf-8")
    if "</script" in text or "<!--" in text:
        raise ValueError(f"{file} would end the script that it stands in")
    return text


def _imported(line: str, stand_ins: Mapping[str, str]) -> tuple[str, str] | None:
    """What a line imports, and from which file."""
    found = _IMPORT.match(line)
    if found is None:
        if re.match(r"import\b", line):
            raise ValueError(f"not an import on one line: {line}")
        return None
    return found["what"], stand_ins.get(found["file"], found["file"])


def _bound(importer: str, what: str, file: str, exported: Mapping[str, list[str]]) -> str:
    """The line that names in a module what it imports."""
    if what.startswith("*"):
        return f"const {what.removeprefix('* as ')} = {_variable(file)};"
    missing = set(_names(what)) - {*exported[file]}
    if missing:
        raise ValueError(f"{importer} wants {', '.join(sorted(missing))} of {file}")
    return f"const {what} = {_variable(file)};"


def _names(what: str) -> Iterator[str]:
    return (name.strip() for name in what.strip("{}").split(",") if name.strip())


def _body(line: str, names: list[str]) -> str:
    """A line of a module as it stands in a function; what it exports is added to `names`."""
    found = _EXPORT.match(line)
    if found is None:
        if re.match(r"export\b", line):
            raise ValueError(f"exports no function and no constant: {line}")
        return line
    names.append(found["name"])
    return line[found.end() :]


def _variable(file: str) -> str:
    return f"$ {file.removesuffix('.js')}".replace(" ", "").replace("-", "_")
