"""Frames and variables that a client was shown, by the numbers that it asks for them again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import polars as pl

from stepscope.app.dap.arguments import Page
from stepscope.app.debug.commands.where_it_is import MOST_COLUMNS, row_text
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.facets import FACETS
from stepscope.app.debug.facets.look import Look
from stepscope.app.debug.moments import Position
from stepscope.app.printable import plain
from stepscope.ingest.errors import ConfigError

Item = TypeVar("Item")
NOT_RECORDED = "not recorded"
WATCHED = {"blocks": "block", "sharers": "block", "cached": "block", "slots": "slot",
           "buffers": "buffer", "waiting": "request", "running": "request", "batch": "request",
           "requests": "request"}  # fmt: skip
"""How `watch` calls what a side of the state lists."""


class Rows(NamedTuple):
    """Rows of a side of the state at a position: each is a variable, its cells are below it."""

    frame: pl.DataFrame
    key: str
    watched: str | None
    at: Position


Held = Rows | Mapping[str, Any] | Sequence[Any]


class Shown:
    """What numbers stand for, until the debugger moves."""

    def __init__(self) -> None:
        self._held: list[Held] = []
        self._frames: list[Position] = []

    def clear(self) -> None:
        """Forget all: the numbers begin anew."""
        self._held.clear()
        self._frames.clear()

    def add_frame(self, position: Position) -> int:
        """Number a frame at a position."""
        self._frames.append(position)
        return len(self._frames)

    def frame(self, number: int) -> Position:
        """Where a frame is; raises ConfigError for one that is not shown any more."""
        return _numbered(self._frames, number, "frame")

    def add(self, held: Held) -> int:
        """Number what has variables below it; 0 where it has none."""
        if not isinstance(held, Rows) and not len(held):
            return 0
        self._held.append(held)
        return len(self._held)

    def scopes(self, debugger: Debugger, frame: int) -> list[dict[str, Any]]:
        """The sides of the state at a frame; those that the trace does not tell are left out."""
        at = self.frame(frame)
        with standing_at(debugger, at):
            look = Look.of(debugger)
            told = [(facet, facet.at(look)) for facet in FACETS]
        return [
            {
                "name": facet.name,
                "variablesReference": self.add(Rows(rows, facet.key, WATCHED.get(facet.name), at)),
                "indexedVariables": len(rows),
                "expensive": False,
            }
            for facet, rows in told
            if rows is not None
        ]

    def variables(self, page: Page) -> list[dict[str, Any]]:
        """What is below a number, from a place on, all of it where `count` is 0.

        Fields have names; rows and items are counted, whatever they are called.
        """
        held = _numbered(self._held, page.variables_reference, "variable")
        if page.filter not in {"", "named" if isinstance(held, Mapping) else "indexed"}:
            return []
        num = len(held.frame) if isinstance(held, Rows) else len(held)
        start = min(page.start, num)
        end = min(start + page.count, num) if page.count else num
        if isinstance(held, Rows):
            rows = held.frame.slice(start, end - start).to_dicts()
            return [self._row(held, row, start + at) for at, row in enumerate(rows)]
        if isinstance(held, Mapping):
            return [self.variable(str(name), value) for name, value in [*held.items()][start:end]]
        return [self.variable(f"[{place}]", held[place]) for place in range(start, end)]

    def variable(self, name: str, value: Any) -> dict[str, Any]:
        """A value under its name, with a number where something is below it."""
        is_nested = isinstance(value, (Mapping, list, tuple))
        text = _fields(value) if isinstance(value, Mapping) else _text(value)
        below = self.add(value) if is_nested else 0
        num = {"indexedVariables": len(value)} if isinstance(value, (list, tuple)) else {}
        return {"name": plain(name), "value": plain(text), "variablesReference": below, **num}

    def watched(self, number: int, name: str) -> tuple[str, Position | None]:
        """How `watch` calls a variable, and where it was shown; its name alone of no such side."""
        held = _numbered(self._held, number, "variable")
        if not isinstance(held, Rows):
            return name, None
        return f"{held.watched} {name}" if held.watched else name, held.at

    def _row(self, rows: Rows, row: dict[str, Any], place: int) -> dict[str, Any]:
        key = row.get(rows.key)
        name = f"[{place}]" if key is None else str(key)
        told = {column: value for column, value in row.items() if column != rows.key}
        return self.variable(name, told)


@contextmanager
def standing_at(debugger: Debugger, position: Position) -> Iterator[None]:
    """Stand somewhere for a while, then where the debugger was."""
    before = debugger.position
    debugger.go(position)
    try:
        yield
    finally:
        debugger.go(before)


def _fields(row: Mapping[str, Any]) -> str:
    """The first fields that are told, whichever were asked for."""
    told = [(name, value) for name, value in row.items() if value is not None]
    return row_text(dict(told[:MOST_COLUMNS]), brief=False)


def _text(value: Any) -> str:
    if value is None:
        return NOT_RECORDED
    return f"{len(value):,} items" if isinstance(value, (list, tuple)) else str(value)


def _numbered(known: Sequence[Item], number: int, what: str) -> Item:
    if not 1 <= number <= len(known):
        raise ConfigError(f"no {what} {number} is shown", todo="ask again where it stopped")
    return known[number - 1]
