"""What a command answers: blocks for people, facts for programs; and what a command is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import polars as pl

from stepscope.app.debug.debugger import Debugger
from stepscope.app.present.blocks import Block, Paragraph, Table
from stepscope.ingest.times import MS

MAX_ROWS = 30


@dataclass(frozen=True, slots=True)
class Answer:
    """Blocks to print, whose text is as recorded, and the same as facts that JSON can hold."""

    blocks: tuple[Block, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    ends: bool = False

    def then(self, other: Answer) -> Answer:
        """This answer and another behind it."""
        facts = {**self.facts, **other.facts}
        return Answer((*self.blocks, *other.blocks), facts, self.ends or other.ends)


class Run(Protocol):
    """Does what a command does; raises ConfigError for words that it cannot take."""

    def __call__(self, debugger: Debugger, words: str, /) -> Answer:
        """Run with what stood behind the command's name."""
        ...


Suggest = Callable[[Debugger], Iterable[str]]


def nothing(_debugger: Debugger) -> Iterable[str]:
    """Suggest nothing: numbers are for whoever types."""
    return ()


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the debugger; help, completion and its page are made of this.

    `example` gives a line that can be typed for this trace, None where the trace has nothing for
    it; `words` what may stand behind the name.
    """

    name: str
    usage: str
    meaning: str
    run: Run
    aliases: tuple[str, ...] = ()
    words: Suggest = nothing
    example: Callable[[Debugger], str | None] = lambda _debugger: None


@dataclass(frozen=True, slots=True)
class Group:
    """Commands that help names together."""

    name: str
    commands: tuple[Command, ...]


def listed(columns: tuple[str, ...], rows: tuple[tuple[Any, ...], ...], name: str) -> Answer:
    """A table of what is known of each, and the same as a fact."""
    facts = [dict(zip(columns, row, strict=True)) for row in rows]
    return Answer((Table(columns, rows),), {name: facts})


def said(text: str, **facts: Any) -> Answer:
    """A line, and facts."""
    return Answer((Paragraph(text),), facts)


def tabled(
    rows: pl.DataFrame, name: str = "rows", title: str = "", num_more: int = 0, **facts: Any
) -> Answer:
    """A table of rows, the first MAX_ROWS of them for people, and all of them as a fact.

    Columns that end in `_ns` are times since the trace began, or durations.
    """
    shown = rows.head(MAX_ROWS)
    columns = tuple(column.removesuffix("_ns") for column in rows.columns)
    as_times = [column.endswith("_ns") for column in rows.columns]
    cells = tuple(
        tuple(_time(cell) if is_time else cell for cell, is_time in zip(row, as_times, strict=True))
        for row in shown.rows()
    )
    to_right = tuple(column for column, is_time in zip(columns, as_times, strict=True) if is_time)
    num_more += len(rows) - len(shown)
    return Answer(
        (Table(columns, cells, title, to_right, num_more),), {name: rows.to_dicts(), **facts}
    )


def _time(cell: object) -> str | None:
    """A time or a duration, all in one unit, so that those of a column can be compared."""
    return f"{cell / MS:,.3f} ms" if isinstance(cell, int) else None
