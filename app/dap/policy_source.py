"""The policy's own source in the editor, where the very source that ran is at hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.shown.site_source import Place, at_hand
from stepscope.app.printable import plain
from stepscope.ingest.errors import ConfigError

MOST_LINES_NAMED = 8


def policy_frames(site: str, first_line: int, first_column: int) -> list[dict[str, Any]]:
    """The functions of a site, innermost first; names alone where their source is not at hand."""
    places, _ = at_hand(site)
    if not places:
        names = site.rpartition(" [")[0] or site
        parts = reversed(names.split(" > "))
        return [{"name": plain(part), "line": 0, "column": 0} for part in parts]
    return [
        {
            "name": plain(place.function),
            "line": place.line - 1 + first_line,
            "column": first_column,
            "source": {"name": place.file.name, "path": str(place.file)},
        }
        for place in reversed(places)
    ]


def decided_at(debugger: Debugger, path: str, line: int) -> str:
    """What `break` takes to stop where decisions were taken at a line of a file, from 1.

    Raises ConfigError where none was, or where it cannot be told.
    """
    if not (sites := _sites(debugger)):
        todo = "stop at a line of the steps of a rank, or at a function breakpoint"
        raise ConfigError(
            "the trace does not say where a policy decides", where=plain(path), todo=todo
        )
    here = [(site, place) for site in sites for place in _places(site, path)]
    if not here:
        raise ConfigError(_why_none(sites), where=plain(path))
    if not (found := sorted({site for site, place in here if place.line == line})):
        lines = sorted({place.line for _, place in here})
        few = ", ".join(map(str, lines[:MOST_LINES_NAMED]))
        raise ConfigError(f"no decision was taken at line {line}", todo=f"some were at {few}")
    quoted = ", ".join("'" + site.replace("'", "''") + "'" for site in found)
    return f"decisions: site in ({quoted})"


def _sites(debugger: Debugger) -> list[str]:
    known = debugger.tables.table("decisions").select("site").drop_nulls().unique()
    return sorted(known.collect()["site"])


def _places(site: str, path: str) -> Iterator[Place]:
    return (place for place in at_hand(site).places if _is_same(place.file, path))


def _is_same(file: Path, path: str) -> bool:
    try:
        return file.samefile(path)
    except (OSError, ValueError):  # it is not there, or no path
        return False


def _why_none(sites: list[str]) -> str:
    """Why no decision was taken in a file: it is another one, or not the source that ran."""
    files = sorted({place.called for site in sites for place in at_hand(site).places})
    if files:
        return f"no decision was taken in this file, but in {', '.join(files)}"
    return at_hand(sites[0]).why_not
