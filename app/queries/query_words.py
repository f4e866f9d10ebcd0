"""What may follow in a query that is being typed: tables of the trace, and their columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from stepscope.analyzers.findings.finding_table import FINDING_COLUMNS, FINDINGS
from stepscope.ingest.derive.holding_intervals import INTERVALS, MADE_OF
from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace

MOST = 200
Names = Mapping[str, Sequence[str]]
"""Columns by the table that they are of."""
_BEGUN = re.compile(r"(?:\b(\w+)\.)?(\w*)$", re.ASCII)
_TABLE_IS_NEXT = re.compile(r"\b(?:from|join)\s+(?:\w+\s*,\s*)*\w*$", re.IGNORECASE)
_IN_QUOTES = re.compile(r"'[^']*'|\"[^\"]*\"|--[^\n]*\n|/\*.*?\*/", re.DOTALL)
_OPEN = re.compile(r"['\"]|--|/\*")


class Completion(NamedTuple):
    """A word that may stand in place of the last `replaces` characters, and what it means."""

    word: str
    replaces: int
    meaning: str = ""


def names_of(trace: Trace) -> Names:
    """The tables that the trace has rows of, what is made of them, and what is found in it.

    All tables where it has no row.
    """
    every = {table.name: table.names for table in (*TABLES, *INTERVALS)}
    own = {name: names for name, names in every.items() if trace.has(MADE_OF.get(name, name))}
    return {**(own or every), FINDINGS: tuple(FINDING_COLUMNS)}


def query_completions(names: Names, before: str, after: str = "") -> list[Completion]:
    """What could be typed between two parts of a query: only what `sql` accepts there.

    Behind `from` and `join` that is a table; behind a table's name, or what a query calls it, and a
    dot its columns; else columns of the tables that the query names, of all where it names none.
    Within a text or a comment it is nothing.
    """
    told = _IN_QUOTES.sub("''", before)
    if _OPEN.search(told.replace("''", "")):
        return []
    found = _BEGUN.search(told)
    of, begun = (found[1], found[2]) if found else (None, "")
    if of:
        words = _columns(names, [_called(names, before + after).get(of, "")])
    elif _TABLE_IS_NEXT.search(told):
        words = _tables(names)
    else:
        whole = f"{told} {_IN_QUOTES.sub(chr(32), after)}"
        named = [each for each in names if re.search(rf"\b{each}\b", whole)]
        words = [*_columns(names, named or [*names]), *_tables(names)]
    fitting = [
        Completion(word, len(begun), meaning)
        for word, meaning in dict(words).items()
        if word.casefold().startswith(begun.casefold()) and word != begun
    ]
    return fitting[:MOST]


def _tables(names: Names) -> list[tuple[str, str]]:
    return [(name, f"{len(columns)} columns") for name, columns in names.items()]


def _columns(names: Names, tables: Sequence[str]) -> list[tuple[str, str]]:
    """Columns of tables, each with the tables that it is of."""
    of: dict[str, list[str]] = {}
    for table in tables:
        for column in names.get(table, ()):
            of.setdefault(column, []).append(table)
    return [(column, f"of {_few(having)}") for column, having in of.items()]


def _few(tables: Sequence[str]) -> str:
    more = len(tables) - 2
    return " and ".join(tables) if more <= 0 else f"{', '.join(tables[:2])} and {more} more"


def _called(names: Names, query: str) -> dict[str, str]:
    """Tables by what a query calls them: by their own names as well."""
    return {name: name for name in names} | dict(_aliases(names, query))


def _aliases(names: Names, query: str) -> Iterator[tuple[str, str]]:
    for found in re.finditer(r"\b(\w+)\s+(?=(?:as\s+)?(\w+)\b)", query, re.IGNORECASE | re.ASCII):
        if found[1] in names and found[2].lower() not in _FOLLOWING:
            yield found[2], found[1]


_FOLLOWING = {
    "where", "group", "order", "limit", "join", "left", "right", "inner", "cross", "full", "on",
    "using", "having", "union", "as", "offset", "semi", "anti",
}  # fmt: skip
"""Words that follow a table's name in a query and are no name of it."""
