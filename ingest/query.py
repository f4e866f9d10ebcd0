"""SQL over the tables of a trace, with errors that name what was meant."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import NamedTuple

import polars as pl

from stepscope.ingest.bounded.distinct_names import distinct_query, with_distinct_names
from stepscope.ingest.bounded.joined_pairs import refuse_all_pairs
from stepscope.ingest.bounded.query_size import parsed_nesting, query_size
from stepscope.ingest.bounded.run_apart import TODO, run_apart
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


MOST_PAIRS_HERE = 2_000_000
"""Pairs of rows that a join may make in the process that asks: wide rows of more take gigabytes."""

FEW = 3
"""Names of a trace that are given as examples of many."""

MOST_ROWS = 100_000
"""Rows of an answer that a screen may be given."""


class Bounds(NamedTuple):
    """How far a query may go: seconds, and rows of its answer; None where that has no end.

    With `memory_bytes` it runs in a process of its own that may map so many. Without, only what may
    take much memory runs in one, and has 8 GiB.
    """

    seconds: float | None = 20.0
    rows: int | None = MOST_ROWS
    memory_bytes: int | None = None


POLL_S = 0.005


def run_sql(
    frames: Mapping[str, pl.LazyFrame],
    query: str,
    bounds: Bounds | None = None,
    also: Sequence[str] = (),
) -> pl.DataFrame:
    """Run one query; raises `QueryError` for anything that Polars cannot parse or run.

    With `bounds` it is given up after some seconds, and the answer has a row more than it may have
    where there are more; an interrupt gives it up as well, and what may take much memory runs in a
    process of its own. A join of all pairs of many rows is refused in any case, and so is a query
    that is nested deeper than Polars plans. Columns of one name are numbered: `ts_ns`, `ts_ns_2`.
    `also` are tables that a query could name, and this one does not.
    """
    _refuse_files(query)
    _refuse_calls(query, _GROWS)
    _refuse_statements(query)
    size = query_size(query)
    tables = {name: frames[name] for name in frames if names_table(query, name)}
    is_apart = bounds is not None and (bounds.memory_bytes is not None or not size.is_light)

    def answer(text: str) -> pl.DataFrame:
        if bounds is not None and is_apart:
            return run_apart(tables, text, bounds.seconds, _most(bounds), bounds.memory_bytes)
        plan = pl.SQLContext(frames, eager=False).execute(text)
        pairs = refuse_all_pairs(plan, tables)
        if bounds is None:
            return plan.collect()
        if pairs.of_any > MOST_PAIRS_HERE:
            return run_apart(tables, text, bounds.seconds, _most(bounds))
        return _bounded(plan, bounds)

    with explained([*frames, *also]), parsed_nesting(size):
        try:
            found = answer(query)
        except pl.exceptions.PolarsError as error:
            columns = {name: frame.collect_schema().names() for name, frame in tables.items()}
            distinct = distinct_query(query, str(error), columns)
            if distinct is None:
                raise
            found = answer(distinct)
        return with_distinct_names(found, query)


def names_table(query: str, table: str) -> bool:
    """Whether a query may be about a table: whether it has its name anywhere."""
    return re.search(rf"\b{table}\b", query) is not None


def _most(bounds: Bounds) -> int | None:
    """Rows that are asked for: one more than the answer may have, to see whether there are more."""
    return None if bounds.rows is None else bounds.rows + 1


def _bounded(asked: pl.LazyFrame, bounds: Bounds) -> pl.DataFrame:
    most = _most(bounds)
    running = (asked if most is None else asked.head(most)).collect(background=True)
    ends = math.inf if bounds.seconds is None else time.monotonic() + bounds.seconds
    try:
        while (answer := running.fetch()) is None:
            if time.monotonic() > ends:
                raise QueryError(f"the query was given up after {bounds.seconds:g} s", todo=TODO)
            time.sleep(POLL_S)
    except BaseException:
        running.cancel()
        raise
    return answer


def condition(text: str) -> pl.Expr:
    """Read an SQL condition over a table's columns; raises `QueryError` where it is none."""
    _refuse_files(text)
    _refuse_calls(text, _GROWS_IN_ROWS)
    with explained(), parsed_nesting(query_size(text)):
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
    if "duplicate" in message:
        return QueryError(_first_line(message), todo="name one of its columns with AS")
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
