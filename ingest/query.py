"""SQL over the tables of a trace, with errors that name what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

import polars as pl

from stepscope.ingest.errors import QueryError

_NO_TABLE = re.compile(r"relation '(?P<name>[^']*)' was not found")
_NO_COLUMN = re.compile(r'unable to find column "(?P<name>[^"]*)"; valid columns: \[(?P<has>.*)\]')


def run_sql(frames: Mapping[str, pl.LazyFrame], query: str) -> pl.DataFrame:
    """Run one query; raises `QueryError` for anything that Polars cannot parse or run."""
    try:
        return pl.SQLContext(frames, eager=True).execute(query)
    except pl.exceptions.PolarsError as error:
        raise _explained(str(error), frames) from None
    except BaseException as error:
        # Polars panics on some statements that it parses and does not implement.
        if type(error).__name__ != "PanicException":
            raise
        raise QueryError(_first_line(str(error))) from None


def _explained(message: str, tables: Iterable[str]) -> QueryError:
    if found := _NO_TABLE.search(message):
        return QueryError(f"no table {found['name']!r}", todo=_near(found["name"], tables))
    if found := _NO_COLUMN.search(message):
        columns = re.findall(r'"([^"]*)"', found["has"])
        return QueryError(f"no column {found['name']!r}", todo=_near(found["name"], columns))
    return QueryError(_first_line(message))


def _near(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = get_close_matches(name, names, n=3)
    return f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"


def _first_line(message: str) -> str:
    lines = message.strip().splitlines()
    return f"the query does not run: {lines[0].strip(' :') if lines else 'no reason given'}"
