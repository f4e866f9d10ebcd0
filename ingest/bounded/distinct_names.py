"""Distinct names for columns of a query that have one name, such as those of a self-join.

Polars refuses some of them (`select a.*, b.ts_ns`, `select count(*), count(*)`) and names others
itself: `ts_ns:1` or, for a wildcard, `ts_ns:b`. Here they are `ts_ns`, `ts_ns_2`, `ts_ns_3`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from stepscope.ingest.bounded.query_size import Token, tokens_of

_DUPLICATED = ("duplicate", "more than one occurrence")
_ENDS_SOURCES = {
    "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "QUALIFY", "WINDOW", "UNION", "INTERSECT",
    "EXCEPT", "OFFSET", "FETCH",
}  # fmt: skip
_FOLLOWS_TABLE = _ENDS_SOURCES | {
    "ON", "USING", "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "SEMI", "ANTI",
    "NATURAL", ",", ")",
}  # fmt: skip


class _Item(NamedTuple):
    """An item of a select list: its tokens, and the names of the columns that it makes."""

    tokens: Sequence[Token]
    names: Sequence[str]

    @property
    def is_wildcard(self) -> bool:
        """Whether it is `*` or `a.*`."""
        return self.tokens[-1].text == "*"


def with_distinct_names(answer: pl.DataFrame, query: str) -> pl.DataFrame:
    """Number the columns that Polars named after others, unless the query itself has their name."""
    columns = answer.columns
    names: dict[str, str] = {}
    taken = set(columns)
    for column in columns:
        base, colon, _ = column.rpartition(":")
        if colon and base in taken and column not in query:
            names[column] = _free_name(base, taken)
            taken.add(names[column])
    return answer.rename(names) if names else answer


def distinct_query(query: str, failure: str, tables: Mapping[str, Sequence[str]]) -> str | None:
    """The query with a name for each column that has another's; None where that is not its failure.

    `tables` are the columns of the tables that it may name. Raises `QueryError` as `tokens_of`.
    """
    if not any(word in failure for word in _DUPLICATED):
        return None
    tokens = tokens_of(query)
    edits: list[tuple[int, int, str]] = []
    for at, token in enumerate(tokens):
        if token.text == "SELECT":
            edits += _edits(query, tokens, at, tables)
    if not edits:
        return None
    for start, end, text in sorted(edits, reverse=True):
        query = f"{query[:start]}{text}{query[end:]}"
    return query


def _edits(
    query: str, tokens: Sequence[Token], at: int, tables: Mapping[str, Sequence[str]]
) -> list[tuple[int, int, str]]:
    """Replacements (start, end, text) in the select list that begins after token `at`."""
    parts, end = _select_list(tokens, at + 1)
    sources = _sources(query, tokens, end, tables)
    items = [_item(query, part, sources) for part in parts]
    if any(item is None for item in items):
        return []
    known = [item for item in items if item is not None]
    taken = {name for item in known for name in item.names}
    used: set[str] = set()
    edits = []
    for item in known:
        new_names = []
        for name in item.names:
            new_names.append(_free_name(name, taken | used) if name in used else name)
            used.add(new_names[-1])
        if new_names != list(item.names):
            start, stop = item.tokens[0].start, item.tokens[-1].end
            edits.append((start, stop, _renamed(query, item, new_names)))
    return edits


def _renamed(query: str, item: _Item, names: Sequence[str]) -> str:
    """The text of an item whose columns have new names."""
    source = query[item.tokens[0].start : item.tokens[-1].end]
    if item.is_wildcard:
        prefix = source[:-1]
        pairs = zip(item.names, names, strict=True)
        return ", ".join(f'{prefix}"{old}" AS "{new}"' for old, new in pairs)
    alias = _alias_at(item.tokens)
    if alias is not None:
        source = query[item.tokens[0].start : item.tokens[alias - 1].end]
    return f'{source} AS "{names[0]}"'


def _select_list(tokens: Sequence[Token], at: int) -> tuple[list[list[Token]], int]:
    """The items of a select list as their tokens, and the index of the token after it."""
    if at < len(tokens) and tokens[at].text in {"DISTINCT", "ALL"}:
        at += 1
    items: list[list[Token]] = [[]]
    depth = 0
    while at < len(tokens):
        token = tokens[at]
        if depth == 0 and token.text in {"FROM", ")", ";", *_ENDS_SOURCES}:
            break
        depth += (token.text in {"(", "[", "CASE"}) - (token.text in {")", "]", "END"})
        if depth == 0 and token.text == ",":
            items.append([])
        else:
            items[-1].append(token)
        at += 1
    return items, at


def _sources(
    query: str, tokens: Sequence[Token], at: int, tables: Mapping[str, Sequence[str]]
) -> dict[str, Sequence[str]]:
    """The columns of the tables that follow a select list, by what the query calls them.

    A table that is made by the query itself has unknown columns and is left out.
    """
    sources: dict[str, Sequence[str]] = {}
    depth = 0
    for number in range(at, len(tokens)):
        text = tokens[number].text
        if depth < 0 or (depth == 0 and (text in _ENDS_SOURCES or text == ";")):
            break
        depth += (text == "(") - (text == ")")
        previous = tokens[number - 1].text
        if depth == 0 and previous in {"FROM", "JOIN", ","} and text != "(":
            table = _plain(query, tokens[number])
            rest = [token for token in tokens[number + 1 : number + 3] if token.text != "AS"]
            is_called = bool(rest) and rest[0].text not in _FOLLOWS_TABLE
            sources[_plain(query, rest[0]) if is_called else table] = tables.get(table, ())
    return sources


def _item(
    query: str, tokens: Sequence[Token], sources: Mapping[str, Sequence[str]]
) -> _Item | None:
    """An item with the names of its columns; None where these are not known."""
    if not tokens:
        return None
    if tokens[-1].text == "*":
        return _wildcard(query, tokens, sources)
    alias = _alias_at(tokens)
    if alias is not None:
        return _Item(tokens, (_plain(query, tokens[-1]),))
    try:
        text = query[tokens[0].start : tokens[-1].end]
        return _Item(tokens, (pl.sql_expr(text).meta.output_name(),))
    except (pl.exceptions.PolarsError, ValueError):
        return None


def _wildcard(
    query: str, tokens: Sequence[Token], sources: Mapping[str, Sequence[str]]
) -> _Item | None:
    if len(tokens) == 1:
        known = list(sources.values())
        is_one = len(known) == 1 and known[0]
        return _Item(tokens, tuple(known[0])) if is_one else None
    columns = sources.get(_plain(query, tokens[0]), ()) if len(tokens) == 3 else ()
    return _Item(tokens, tuple(columns)) if columns else None


def _alias_at(tokens: Sequence[Token]) -> int | None:
    """The index at which `AS name`, or a bare name after an operand, begins; None without one."""
    if len(tokens) > 2 and tokens[-2].text == "AS":
        return len(tokens) - 2
    is_name = tokens[-1].text[0].isalpha() or tokens[-1].text[0] in '_"`'
    if len(tokens) < 2 or not is_name or tokens[-1].text == "END":
        return None
    before = tokens[-2].text
    is_operand = before[-1].isalnum() or before[-1] in "_)]\"'`"
    return len(tokens) - 1 if is_operand and before not in _BEFORE_OPERAND else None


_BEFORE_OPERAND = {"AND", "OR", "NOT", "LIKE", "ILIKE", "IN", "IS", "BETWEEN", "DISTINCT"}


def _plain(query: str, token: Token) -> str:
    """A name as it is written, without quotes."""
    return query[token.start : token.end].strip('"`')


def _free_name(name: str, taken: Iterable[str]) -> str:
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
