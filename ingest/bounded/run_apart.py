"""A query in a process of its own, which can be stopped, and has so much memory and no more.

Polars stops between the nodes of a plan alone: a join whose keys are all alike goes on, and takes
more and more, after it was given up. A plan may also end the process that has it.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from stepscope.ingest.bounded.joined_pairs import refuse_all_pairs
from stepscope.ingest.errors import QueryError

MOST_BYTES = 8 << 30
"""Memory that the process may map; what Polars reserves at its start is in it."""
TODO = "ask for fewer rows, or join on columns that tell rows apart"
TOO_LONG = "maximum length"
"""Polars says so of what has 2**32 rows, where there is memory for them."""
NO_ROOM = ("spawn worker thread", "os error 11", "os error 12", "Cannot allocate memory")
"""Polars or the system says so where memory for threads or for a file's pages lacks."""
NAME = __name__
QUERY, ANSWER, FAILED = "query.sql", "answer.ipc", "failed.json"
_WANT_OF_MEMORY = {-signal.SIGKILL, -signal.SIGABRT}
"""How a process ends without room: the system kills it, or its allocator gives up."""


def run_apart(
    frames: Mapping[str, pl.LazyFrame],
    query: str,
    seconds: float | None,
    rows: int | None,
    memory_bytes: int | None = None,
) -> pl.DataFrame:
    """Run a query over tables, at most so long and for so many rows; None is without end.

    Raises `QueryError` where it takes longer, or more memory than `memory_bytes` (MOST_BYTES by
    default), or ends the process; and the PolarsError that it ends in.
    """
    limit = memory_bytes or MOST_BYTES
    with TemporaryDirectory(prefix="stepscope-query-") as name:
        folder = Path(name)
        for table, frame in frames.items():
            frame.sink_ipc(folder / f"{table}.table")
        (folder / QUERY).write_text(query, encoding="utf-8", errors="replace")
        command = [sys.executable, "-P", "-m", NAME, name, "" if rows is None else str(rows)]
        command.append(str(limit))
        try:
            ended = subprocess.run(  # noqa: S603 - our own module
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            raise QueryError(f"the query was given up after {seconds:g} s", todo=TODO) from None
        if (folder / FAILED).exists():
            _raise_failure(json.loads((folder / FAILED).read_bytes()))
        if (folder / ANSWER).exists():
            return pl.read_ipc(BytesIO((folder / ANSWER).read_bytes()))
        raise _ended(ended.returncode, ended.stderr, limit)


def _raise_failure(failure: dict[str, str]) -> None:
    if "todo" in failure:
        raise QueryError(failure["what"], todo=failure["todo"])
    kind = getattr(pl.exceptions, failure["kind"], pl.exceptions.ComputeError)
    raise kind(failure["what"])


def _ended(code: int, messages: bytes, limit: int) -> QueryError:
    """The failure of a query whose process ended with `code` and without an answer."""
    if code > 0:  # such as a disk that is full
        last = messages.decode(errors="replace").strip().rpartition("\n")[2]
        return QueryError(f"the process of the query failed: {last}", todo="free memory and disk")
    if code == 0 or code in _WANT_OF_MEMORY:
        what = f"it makes more than has room in {limit / (1 << 30):g} GiB of memory"
        return QueryError(f"the query was given up: {what}", todo=TODO)
    number = -code
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return QueryError(
        f"the query ended the process that ran it ({name})",
        todo="write it with fewer levels and terms, or ask for fewer rows",
    )


def _answer(folder: Path, rows: int | None) -> None:
    """Answer the query of a folder into it, or write down what is wrong."""
    frames = {file.stem: pl.scan_ipc(file) for file in folder.glob("*.table")}
    query = (folder / QUERY).read_text(encoding="utf-8")
    try:
        plan = pl.SQLContext(frames, eager=False).execute(query)
        refuse_all_pairs(plan, frames)
        answer = (plan if rows is None else plan.head(rows)).collect()
    except QueryError as error:
        _write_failure(folder, {"what": error.what, "todo": error.todo})
        return
    except MemoryError:
        return
    except BaseException as error:
        # Polars panics on some statements that it parses and does not implement.
        is_panic = type(error).__name__ == "PanicException"
        if not is_panic and not isinstance(error, pl.exceptions.PolarsError):
            raise
        if not any(reason in str(error) for reason in (TOO_LONG, *NO_ROOM)):
            _write_failure(folder, {"what": str(error), "kind": type(error).__name__})
        return
    answer.write_ipc(folder / "draft")
    (folder / "draft").rename(folder / ANSWER)


def _write_failure(folder: Path, failure: dict[str, str]) -> None:
    (folder / FAILED).write_text(json.dumps(failure), encoding="utf-8")


def _limit_memory(most_bytes: int) -> None:
    with suppress(ImportError, ValueError, OSError):  # a system may have no such limit
        import resource  # noqa: PLC0415 - not every system has it

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))


if __name__ == "__main__":
    _limit_memory(int(sys.argv[3]))
    _answer(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2] else None)
