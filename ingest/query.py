"""SQL over the tables of a trace, with errors that name what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

import polars as pl

from stepscope.ingest.errors import QueryError

_NO_TABLE = re.compile(r"relation '(?P<name>[^']*)' was not found")
_NO_COLUMN = re.compile(r'unable to find column "(?P<name>[^"]*)"; valid columns: \[(?P<has>.*)\]')

_OF_A_QUERY = "_POLARS_TMP_SQL"
"""What Polars calls a query within a condition, which has no tables to ask."""

# Polars' table functions (`read_csv('...')`) open any file; a query is about the trace alone, and
# may come from a web page. No column or table of ours begins so.
_READS_FILES = re.compile(r"\b(?:read|scan)_\w+", re.IGNORECASE)

# Some make texts and rows of any size out of a number, and Polars ends the process that lacks room
# for them. A condition is asked of every row, so there others would do the same.
_CALL = r"""\b(%s)(?:\s|["`]|--[^\n]*\n|/\*.*?\*/)*\("""
_GROWS = "lpad|rpad|generate_series|range"
_GROWS_IN_ROWS = f"{_GROWS}|array_agg|string_agg|listagg|replace|regexp_replace"

# Polars also runs DROP, TRUNCATE, CREATE and DELETE, on its own copies: an empty answer to those
# would say that something was done to the trace.
_ASKS = ("SELECT", "WITH", "FROM", "VALUES", "SHOW", "EXPLAIN")
_FIRST_WORD = re.compile(r"(?:\s|\(|--[^\n]*|/\*.*?\*/)*(?P<word>\w+|\S?)", re.DOTALL)


FEW = 3
"""Names of a trace that are given as examples of many."""


def run_sql(frames: Mapping[str, pl.LazyFrame], query: str) -> pl.DataFrame:
    """Run one query; raises `QueryError` for anything that Polars cannot parse or run."""
    _refuse_files(query)
    _refuse_calls(query, _GROWS)
    _refuse_statements(query)
    with explained(frames):
        return pl.SQLContext(frames, eager=True).execute(query)


def condition(text: str) -> pl.Expr:
    """Read an SQL condition over a table's columns; raises `QueryError` where it is none."""
    _refuse_files(text)
    _refuse_calls(text, _GROWS_IN_ROWS)
    with explained():
        return pl.sql_expr(text)


@contextmanager
def explained(tables: Iterable[str] = ()) -> Iterator[None]:
    """Turn what Polars raises of a query or a condition into one line that says what was meant."""
    try:
        yield
    except pl.exceptions.PolarsError as error:
        raise _explained(str(error), tables) from None
    except BaseException as error:
        # Polars panics on some statements that it parses and does not implement.
        if type(error).__name__ != "PanicException":
            raise
        raise QueryError(_first_line(str(error))) from None


def _refuse_statements(query: str) -> None:
    found = _FIRST_WORD.match(query)
    first = found["word"] if found else ""
    if first and first.upper() not in _ASKS:
        raise QueryError(
            f"the query does not run: it begins with {first!r}, and a query only asks",
            todo=f"begin it with {', '.join(_ASKS[:-1])} or {_ASKS[-1]}",
        )


def _refuse_files(query: str) -> None:
    if found := _READS_FILES.search(query):
        raise QueryError(f"{found[0]} is not allowed: a query reads the trace's tables alone")


def _refuse_calls(query: str, names: str) -> None:
    if found := re.search(_CALL % names, query, re.IGNORECASE | re.DOTALL):
        raise QueryError(f"{found[1]} is not allowed: what it makes may be of any size")


def _explained(message: str, tables: Iterable[str]) -> QueryError:
    if found := _NO_TABLE.search(message):
        return QueryError(f"no table {found['name']!r}", todo=near(found["name"], tables))
    if found := _NO_COLUMN.search(message):
        if found["name"].startswith(_OF_A_QUERY):
            return QueryError("a condition holds no query of its own", todo="write it with sql")
        columns = re.findall(r'"([^"]*)"', found["has"])
        return QueryError(f"no column {found['name']!r}", todo=near(found["name"], columns))
    return QueryError(_first_line(message))


def near(name: str, known: Iterable[str]) -> str:
    """Say which of the known names may have been meant, or else which there are."""
    names = list(known)
    meant = get_close_matches(name, names, n=3)
    if meant:
        return f"did you mean {' or '.join(meant)}?"
    return f"there are {', '.join(names)}" if names else ""


def near_names(name: str, known: Sequence[str]) -> str:
    """The same of names of a trace, which may be very many: how many, and the first few."""
    meant = get_close_matches(name, known, n=3)
    if meant or not known:
        return f"did you mean {' or '.join(meant)}?" if meant else "it has none"
    few = ", ".join(known[:FEW])
    return f"it has {few}" if len(known) <= FEW else f"it has {len(known):,}, such as {few}"


def _first_line(message: str) -> str:
    lines = message.strip().splitlines()
    return f"the query does not run: {lines[0].strip(' :') if lines else 'no reason given'}"
