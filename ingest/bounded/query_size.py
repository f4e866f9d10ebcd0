"""The size of a query, counted before Polars parses it.

Polars walks a plan and its expressions by recursion: a sum of 9,500 terms overflows its stack and
ends the process, and one of 3,000 takes seconds to plan. Its parser has a limit of its own, past
which its message names a word that is not wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import polars as pl

from stepscope.ingest.errors import QueryError

MOST_TOKENS = 50_000
MOST_NESTED = 20
"""Levels of parentheses, CASE, NOT and signs; Polars parses 22 of the costliest kind."""
PARSED_NESTED = 7
"""Levels that Polars parses whatever operators are in them."""
MOST_CHAINED = 500
"""Operators, WHENs or joins, each of which Polars plans within the one before."""
MOST_SELECTS = 100
"""SELECTs, and as many references to tables."""

_TOKEN = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<text>'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`[^`]*`?)
    |(?P<number>\d[\w.]*)
    |(?P<word>\w+)
    |(?P<sign>\|\||<=>|<=|>=|<>|!=|==|::|->>|->|\S)""",
    re.DOTALL | re.VERBOSE,
)
_MISREAD = re.compile("sql parser error|unsupported function 'not'")
_OPENS, _CLOSES = {"(", "[", "CASE"}, {")", "]", "END"}
_OPERATORS = {
    "+", "-", "*", "/", "%", "|", "||", "&", "^", "#", "<", ">", "=", "==", "<=", ">=", "<>", "!=",
    "<=>", "::", "->", "->>", "~", "!", ":", "AND", "OR", "XOR", "NOT", "LIKE", "ILIKE", "RLIKE",
    "REGEXP", "IN", "IS", "BETWEEN", "DIV", "WHEN", "OVER", "COLLATE", "[",
}  # fmt: skip
_COMBINES = {"UNION", "INTERSECT", "EXCEPT", "JOIN"}
_CLAUSES = {"SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "QUALIFY", "WINDOW"}
_PREFIXES = {"NOT", "-", "+", "~", "!"}
_NO_OPERAND = _OPERATORS | _OPENS | _CLAUSES | {
    ",", "BY", "ON", "THEN", "ELSE", "DISTINCT", "ALL",
}  # fmt: skip
"""Tokens that end no operand: a sign that follows one is a prefix."""
_LENGTHENS = {"||", "CONCAT", "CONCAT_WS", "FORMAT"}
_MULTIPLIES = {
    "REPLACE", "REGEXP_REPLACE", "REPEAT", "ARRAY_AGG", "STRING_AGG", "LISTAGG", "UNNEST",
    "EXPLODE",
}  # fmt: skip


class Token(NamedTuple):
    """A token of a query and its position; `text` of a word is in capitals."""

    text: str
    start: int
    end: int


class QuerySize(NamedTuple):
    """Sizes of a query, each as MOST_TOKENS and the constants after it describe.

    `num_sources` counts references to tables, `num_lengthening` operators that make text longer;
    `is_multiplying` is whether a function is in it that may make much of one row.
    """

    num_chars: int
    num_tokens: int
    num_nested: int
    num_chained: int
    num_selects: int
    num_sources: int
    num_lengthening: int
    is_multiplying: bool

    @property
    def is_light(self) -> bool:
        """Whether it takes no more memory than a few times its tables, however it is planned."""
        if self.num_lengthening and (self.num_selects > 1 or self.num_chars > 1_000):
            return False
        is_small = self.num_tokens <= 2_000 and self.num_chained <= 100 and self.num_sources <= 8
        return is_small and self.num_lengthening <= 8 and not self.is_multiplying


def tokens_of(query: str) -> list[Token]:
    """The tokens of a query, without comments; raises `QueryError` past MOST_TOKENS."""
    tokens = []
    for match in _TOKEN.finditer(query):
        if match.lastgroup == "skip":
            continue
        text = match[0].upper() if match.lastgroup == "word" else match[0]
        tokens.append(Token(text, match.start(), match.end()))
        if len(tokens) > MOST_TOKENS:
            raise _too_large(f"more than {MOST_TOKENS:,} words and signs")
    return tokens


def query_size(query: str) -> QuerySize:
    """Measure a query; raises `QueryError` where it is larger than Polars plans safely."""
    tokens = tokens_of(query)
    words = [token.text for token in tokens]
    nested, chained = _depths(words)
    num_selects = words.count("SELECT")
    if nested > MOST_NESTED:
        raise _too_large(f"{nested:,} levels of nesting, and the limit is {MOST_NESTED:,}")
    if chained > MOST_CHAINED:
        raise _too_large(f"{chained:,} operators in a chain, and the limit is {MOST_CHAINED:,}")
    if num_selects > MOST_SELECTS:
        raise _too_large(f"{num_selects:,} SELECTs, and the limit is {MOST_SELECTS:,}")
    num_sources = _num_sources(words)
    if num_sources > MOST_SELECTS:
        raise _too_large(f"{num_sources:,} references to tables, and the limit is {MOST_SELECTS:,}")
    return QuerySize(
        len(query), len(tokens), nested, chained, num_selects, num_sources,
        sum(word in _LENGTHENS for word in words), not _MULTIPLIES.isdisjoint(words),
    )  # fmt: skip


@contextmanager
def parsed_nesting(size: QuerySize) -> Iterator[None]:
    """Name the nesting of a query where Polars may have failed to parse it for that alone.

    Its parser counts operators of several precedences as levels, too, and tries another reading of
    a query past its limit, so that its message may be about any word.
    """
    try:
        yield
    except pl.exceptions.SQLInterfaceError as error:
        message = str(error).partition("\n")[0]
        if size.num_nested < PARSED_NESTED or not _MISREAD.search(message):
            raise
        raise QueryError(
            f"the query does not run: {message}",
            todo=f"it has {size.num_nested} levels of nesting, of which Polars may misread more "
            f"than {PARSED_NESTED}: write it with fewer",
        ) from None


class _Level:
    """An open parenthesis or CASE: operators since the last comma or clause, prefixes in a row."""

    def __init__(self) -> None:
        self.num_operators = 0
        self.num_combined = 0
        self.num_prefixes = 0
        self.is_of_tables = False


def _depths(words: list[str]) -> tuple[int, int]:
    """The most levels of nesting, and the most operators that are planned within each other."""
    levels = [_Level()]
    nested_before = chained_before = 0  # of the levels around the innermost one
    most_nested = most_chained = 0
    previous = "SELECT"
    for word in words:
        level = levels[-1]
        if word in _CLOSES and len(levels) > 1:
            levels.pop()
            level = levels[-1]
            nested_before -= 1 + level.num_prefixes
            chained_before -= level.num_operators + level.num_combined
        elif word in _COMBINES or (word == "," and level.is_of_tables):
            level.num_combined += 1
        elif word in _CLAUSES or word == ",":
            level.num_operators = 0
            level.is_of_tables = word == "FROM" or (word == "," and level.is_of_tables)
        elif word in _PREFIXES and previous in _NO_OPERAND:
            level.num_prefixes += 1
        elif word in _OPERATORS:
            level.num_operators += 1
        if word not in _OPENS and word not in _PREFIXES:
            level.num_prefixes = 0
        nested = nested_before + level.num_prefixes
        chained = chained_before + level.num_operators + level.num_combined
        if word in _OPENS:
            nested_before, chained_before = nested + 1, chained
            nested = nested_before
            levels.append(_Level())
        most_nested, most_chained = max(most_nested, nested), max(most_chained, chained)
        previous = word
    return most_nested, most_chained


def _num_sources(words: list[str]) -> int:
    """References to tables: of FROM, of JOIN, and of each comma between tables."""
    commas, after_from = 0, [False]
    for word in words:
        if word == "(":
            after_from.append(False)
        elif word == ")" and len(after_from) > 1:
            after_from.pop()
        elif word in _CLAUSES:
            after_from[-1] = word == "FROM"
        commas += word == "," and after_from[-1]
    return words.count("FROM") + words.count("JOIN") + commas


def _too_large(what: str) -> QueryError:
    return QueryError(
        f"the query is too large: it has {what}",
        todo="split it into several queries, or replace a chain with IN (...) or a join",
    )
