"""Rows that `stepscope summary -o` wrote, from files and folders; which of them are traces."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.app.cli.gated import traces_in
from stepscope.ingest.errors import TraceError

if TYPE_CHECKING:
    import polars as pl

TABLES = (".parquet", ".csv")
LINES = ".json"
TOLD_BY = ("summary_version", "trace")
"""Columns by which a summary is known."""
WRITE_ONE = "write one with stepscope summary TRACE... -o FILE"
NOT_READ = ("findings", "not_applicable", "config")
"""Columns that are no metric, and of which each format has another shape."""


def summaries_and_traces(paths: Iterable[Path]) -> tuple[list[Path], int]:
    """What the paths name, in their order: summaries, else traces; what a folder has, by name.

    Of a folder with summaries these alone are taken: they are likely to be of the traces beside
    them; the second number says how many traces were left out. Raises TraceError of a folder
    without either.
    """
    found: dict[Path, None] = {}
    num_left_out = 0
    for path in paths:
        if not path.is_dir() or path.suffix == ".trace" or any(path.glob("manifest*.json")):
            found[path] = None
        elif tables := sorted(each for each in path.iterdir() if is_summary(each)):
            found |= dict.fromkeys(tables)
            num_left_out += sum(any(each.glob("manifest*.json")) for each in path.iterdir())
        elif not any(path.iterdir()):
            raise TraceError("the folder is empty", where=str(path), todo=WRITE_ONE)
        else:
            found |= dict.fromkeys(traces_in(path))
    return list(found), num_left_out


def is_summary(path: Path) -> bool:
    """Whether a file is one, or no trace at all: of JSON, which traces are as well, lines tell."""
    if path.suffix in TABLES:
        return path.is_file()
    if path.suffix != LINES or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            first = json.loads(file.readline(1 << 20) or b"{}")
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and TOLD_BY[0] in first


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a summary, in their order. Raises TraceError where it is none, or has none."""
    import polars as pl

    from stepscope.analyzers.many_runs.trace_row import VERSION

    try:
        table = _read(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, UnicodeDecodeError) as error:
        what = f"it cannot be read as {path.suffix[1:]}: {str(error).partition(chr(10))[0]}"
        raise TraceError(what, where=str(path), todo=WRITE_ONE) from error
    if absent := [name for name in TOLD_BY if name not in table.columns]:
        what = f"it is no summary: it has no column {' and no column '.join(absent)}"
        raise TraceError(what, where=str(path), todo=WRITE_ONE)
    if table.is_empty():
        raise TraceError("there is no row in it", where=str(path), todo=WRITE_ONE)
    versions = set(table["summary_version"].to_list())
    if versions != {VERSION}:
        others = ", ".join(sorted(str(each) for each in versions - {VERSION}))
        what = f"its columns are those of version {others}, and only {VERSION} is known"
        raise TraceError(what, where=str(path), todo="sum the traces up again")
    if "window" in table.columns and table["window"].is_not_null().any():
        what = "its rows are of windows of steps, and not of runs"
        raise TraceError(what, where=str(path), todo="sum the traces up without --window")
    return table.drop(name for name in NOT_READ if name in table.columns).to_dicts()


def _read(path: Path) -> pl.DataFrame:
    import polars as pl

    from stepscope.analyzers.many_runs.trace_row import SCHEMA

    if path.suffix == ".parquet":
        return pl.read_parquet(path)
    if path.suffix == ".csv":
        own = {name: kind for name, kind in SCHEMA.items() if name not in NOT_READ}
        return pl.read_csv(path, schema_overrides=own, infer_schema_length=None)
    return pl.read_ndjson(path, infer_schema_length=None)
