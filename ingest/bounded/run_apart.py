"""A query in a process of its own, which can be stopped, and has so much memory and no more.

Polars stops between the nodes of a plan alone: a join whose keys are all alike goes on, and takes
more and more, after it was given up.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from stepscope.ingest.errors import QueryError

MOST_BYTES = 8 << 30
"""Memory that the process may map; what Polars reserves at its start is in it."""
TODO = "ask for fewer rows, or join on columns that tell rows apart"
TOO_LONG = "maximum length"
"""Polars says so of what has 2**32 rows, where there is memory for them."""
NAME = __name__
QUERY, ANSWER, FAILED = "query.sql", "answer.ipc", "failed.txt"


def run_apart(
    frames: Mapping[str, pl.LazyFrame], query: str, seconds: float | None, rows: int | None
) -> pl.DataFrame:
    """Run a query over tables, at most so long and for so many rows; None is without end.

    Raises `QueryError` where it fails, takes longer, or more memory than MOST_BYTES.
    """
    with TemporaryDirectory(prefix="stepscope-query-") as name:
        folder = Path(name)
        for table, frame in frames.items():
            frame.sink_ipc(folder / f"{table}.table")
        (folder / QUERY).write_text(query, encoding="utf-8")
        command = [sys.executable, "-P", "-m", NAME, name, "" if rows is None else str(rows)]
        command.append(str(MOST_BYTES))
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(command, capture_output=True, timeout=seconds, check=False)  # noqa: S603 - our own module
            if (folder / FAILED).exists():
                raise QueryError((folder / FAILED).read_text(encoding="utf-8"))
            if (folder / ANSWER).exists():
                return pl.read_ipc(BytesIO((folder / ANSWER).read_bytes()))
            raise QueryError("the query was given up: it makes more than has room", todo=TODO)
        raise QueryError(f"the query was given up after {seconds:g} s", todo=TODO)


def _answer(folder: Path, rows: int | None) -> None:
    """Answer the query of a folder into it, or write down what is wrong."""
    frames = {each.stem: pl.scan_ipc(each) for each in folder.glob("*.table")}
    asked = (folder / QUERY).read_text(encoding="utf-8")
    try:
        found = pl.SQLContext(frames, eager=False).execute(asked)
        answer = (found if rows is None else found.head(rows)).collect()
    except pl.exceptions.PolarsError as error:
        if TOO_LONG in str(error):
            return
        (folder / FAILED).write_text(str(error), encoding="utf-8")
        return
    answer.write_ipc(folder / "draft")
    (folder / "draft").rename(folder / ANSWER)


def _limit_memory(most_bytes: int) -> None:
    with suppress(ImportError, ValueError, OSError):  # a system may have no such limit
        import resource  # noqa: PLC0415 - not every system has it

        resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))


if __name__ == "__main__":
    _limit_memory(int(sys.argv[3]))
    _answer(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2] else None)
