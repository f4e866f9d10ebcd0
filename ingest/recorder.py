"""What an engine calls to record itself; standard library only.

    with Recorder("run.trace", producer="my-engine") as rec:
        with rec.span("schedule"):
            batch = schedule()
        rec.steps(step=7, ts_ns=rec.now_ns(), kind="decode", num_decode_reqs=len(batch))

There is one method per table; arguments are the table's columns in the order of the schema,
without `rank` and `seq`, which counts rows, and what is omitted is null. Recording never raises
into the engine: a row that cannot be recorded is counted in `dropped`, and a write that fails stops
the recording.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from stepscope.ingest.columns import Column, Table
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.manifest import (
    ClockInfo,
    Manifest,
    ReadReport,
    manifest_name,
    write_manifest,
)
from stepscope.ingest.recording.background import Background, Compactor
from stepscope.ingest.recording.bound import bound
from stepscope.ingest.recording.bulk import Bulk
from stepscope.ingest.recording.forms.rows import Begin, Row
from stepscope.ingest.recording.forms.spans import SPAN_COLUMNS, SpanFunction, span_function
from stepscope.ingest.recording.journal import Journal
from stepscope.ingest.recording.lasting import Lasting
from stepscope.ingest.recording.place import Taken, claim, refused, writer_of_part
from stepscope.ingest.recording.row_streams import Rows
from stepscope.ingest.recording.starts import start_paths
from stepscope.ingest.schema import BY_NAME, TABLES

_open_recorders: weakref.WeakSet[Recorder] = weakref.WeakSet()


class Recorder:
    """Records one rank of an engine into a `.trace` directory, until closed.

    Every rank records in a process of its own with its own `rank`, into the same `path` if they
    share a file system; another process that records rows of the same rank is a `part` of it, such
    as its front end. Threads of a process may record at once; a process that is forked off
    records nothing. Raises `RecordingError` where `path` cannot take a recording.
    """

    steps: Row
    batch_rows: Row
    segments: Row
    lifecycle: Row
    decisions: Row
    allocations: Row
    accesses: Row
    tasks: Row
    core_spans: Row
    core_waits: Row
    ready_order: Row
    thread_phases: Row
    task_edges: Row
    collectives: Row
    outputs: Row
    spans: Row
    flows: Row
    counters: Row
    queue_order: Row
    slot_tokens: Row
    span: SpanFunction

    def __init__(  # noqa: PLR0913 - what a manifest says, each by its name
        self,
        path: str | Path,
        *,
        producer: str,
        producer_version: str = "",
        clock: ClockInfo | None = None,
        rank: int = 0,
        part: str = "",
        config: Mapping[str, Any] | None = None,
        workload: Mapping[str, Any] | None = None,
        scenario: str | None = None,
        variant: str | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.path = Path(path).absolute()
        self.rank = rank
        self._writer = writer_of_part(rank, part)
        self.now_ns = now_ns
        self._manifest = Manifest(
            producer,
            producer_version,
            clock or ClockInfo("wall"),
            (rank,),
            dict(config or {}),
            dict(workload) if workload is not None else None,
            scenario,
            variant,
            closed=False,
        )
        self._compactor = Compactor()
        self._background = Background(self._compactor)
        self._journal = self._begun()
        self._closing = threading.Lock()
        self._is_closed = False
        for table in TABLES:
            setattr(self, table.name, self._rows_of(table, table.given))
        spans = BY_NAME["spans"]
        columns = [column for column in spans.columns if column.name in SPAN_COLUMNS]
        self.span = span_function(self._rows_of(spans, columns, {"form": "slice"}), now_ns)
        _open_recorders.add(self)
        atexit.register(self.close)

    @classmethod
    def under(cls, parent: str | Path, **said: Any) -> Recorder:
        """Record into a directory of this start's own below `parent`; the rest as for a recorder.

        It is named by the time and the process, or by `STEPSCOPE_START`, which `new_start` sets:
        all ranks and parts of one start record into one trace. Where this one is recorded there
        already, of an earlier start, a number is put behind the name. Raises as a recorder does.
        """
        for path in start_paths(Path(parent)):
            with suppress(Taken):
                return cls(path, **said)
        raise AssertionError  # there is no end of paths

    @property
    def dropped(self) -> dict[str, int]:
        """Rows per table that were given and not recorded, those after `close` among them.

        Rows of processes that were forked off are counted in them, and here until the recorder is
        closed; what the trace says of dropped rows is what was counted until then.
        """
        return self._journal.tally.total()

    @property
    def failed(self) -> str | None:
        """Why recording stopped before it was closed, or None."""
        return self._journal.failed

    def narrow(self, table: str, *names: str) -> Row:
        """Build a function that records these columns of a table only, in that order.

        For the rows that an engine writes most: the cost of a row is that of its columns, given
        or not. Rows of one function keep their order; where rows of two functions have the same
        `ts_ns`, only `seq` tells their order, in tables that have it. Raises `ConfigError` for a
        table or column that does not exist, and for a required column that is left out.
        """
        return self._rows_of(*bound(table, names))

    def several(
        self, table: str, names: Sequence[str], same: Sequence[str], each: Sequence[str]
    ) -> tuple[Row, Callable[..., None]]:
        """Build a function as `narrow` does of the columns `names`, and one for several rows.

        The second takes one value for all rows of each column that is the `same`, in that order,
        and at last an iterable with a tuple of the columns `each` of a row; further `names` are
        null then. A tuple with lists is a row for each of their items, as many as the shortest has.
        Rows of both keep their order. Raises `ConfigError` as `narrow` does, and where
        the second would leave out a required column.
        """
        known, columns = bound(table, names)
        bound(table, [*same, *each])
        if not each or not {*same, *each} <= {*names}:
            raise ConfigError("name columns that are recorded, some in each row", where=table)
        rows = Rows(self._journal, known, columns, same=same, each=each)
        return self._alone(rows.record), self._alone(rows.more)

    def in_two(
        self, table: str, names: Sequence[str], later: Sequence[str]
    ) -> tuple[Begin, Callable[..., None]]:
        """Build two functions: one records a row, one adds the `later` columns to it.

        The first returns what the second takes first. The row is on record at once, and null in the
        later columns until it is completed, which may be after other rows were begun, in any order,
        and once. Raises `ConfigError` as `narrow` does, and where a later column is required.
        """
        known, columns = bound(table, [*names, *later])
        if not later or set(known.required) & set(later):
            raise ConfigError(
                "give required columns when the row begins, and at least one other column later",
                where=table,
            )
        num_first = len(names)
        rows = Rows(self._journal, known, columns[:num_first], later=columns[num_first:])
        return self._alone(rows.record), self._alone(rows.more)

    def bulk(self, table: str, *names: str) -> Row:
        """Build a function that records many rows in one call, a column an argument.

        An argument is one value for all rows, or a sequence with one for each: a list, a tuple, an
        array of numpy or `array`, any buffer of one dimension, which is copied as it is where it
        has the column's type. A call with a value that does not fit, or with sequences of several
        lengths, records nothing, and all of its rows are counted as dropped. Raises `ConfigError`
        as `narrow` does.
        """
        return Bulk(self._journal, *bound(table, names)).put

    def batches(self) -> Lasting:
        """Begin to record the batches of a scheduler by what changes from one to the next."""
        return Lasting(self._journal)

    def close(self) -> None:
        """Stop recording and turn the journal into Parquet; never raises, and may be repeated."""
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
        atexit.unregister(self.close)
        self._journal.close()
        self._background.finish()
        written = self._write_closed_manifest()
        self._journal.let_go()
        self._compact()
        if written and self.dropped != written.dropped:  # by threads that did not wait for it
            self._write_closed_manifest()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _manifest_file(self) -> Path:
        return self.path / manifest_name(self._writer)

    def _begun(self) -> Journal:
        folder = claim(self.path, self._writer)
        try:
            write_manifest(self._manifest, self._manifest_file)
            return Journal(folder, self._background.sealed, counts=not self._writer.part)
        except (OSError, TypeError, ValueError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise refused(self.path, getattr(error, "strerror", None) or error) from None

    def _rows_of(
        self, table: Table, columns: Sequence[Column], constants: Mapping[str, str] | None = None
    ) -> Row:
        return self._alone(Rows(self._journal, table, columns, constants).record)

    def _alone(self, record: Callable[..., Any]) -> Callable[..., Any]:
        return record if _HAS_GIL else _locked(record, self._journal)

    def _write_closed_manifest(self) -> Manifest | None:
        manifest = self._closed_manifest()
        try:
            write_manifest(manifest, self._manifest_file)
        except (OSError, TypeError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            self._journal.fail(f"the manifest cannot be written: {why}")
            return None
        return manifest

    def _closed_manifest(self) -> Manifest:
        journal, reason = self._journal, self._journal.tally.reason
        recorded, dropped = journal.recorded(), self.dropped
        broken = dropped if journal.failed is None else recorded
        return replace(
            self._manifest,
            closed=True,
            tables={name: "partial" if name in broken else "complete" for name in recorded},
            dropped=dropped,
            report=ReadReport(notes=(reason,)) if reason else None,
        )

    def _compact(self) -> None:
        """Compact what is left: here if the program uses Polars anyway, else in the process."""
        if "polars" not in sys.modules:
            self._compactor.compact_writer(self.path, self._writer)
        self._compactor.finish()
        if "polars" in sys.modules:
            from stepscope.ingest.recording.compaction import compact_writer  # noqa: PLC0415 - needs Polars

            # A full disk, mostly. The rows are safe in the journal, which opens as well.
            with suppress(Exception):
                compact_writer(self.path, self._writer)

    def _disown(self) -> None:
        self._is_closed = True
        self._closing = threading.Lock()
        self._journal.disown()
        self._compactor.let_go()


def _locked(record: Callable[..., Any], journal: Journal) -> Callable[..., Any]:
    def record_alone(*args: Any, **kwargs: Any) -> Any:
        with journal.lock:  # another one in a process that was forked off
            return record(*args, **kwargs)

    return record_alone


def _disown_all() -> None:
    for recorder in list(_open_recorders):
        recorder._disown()


_HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
os.register_at_fork(after_in_child=_disown_all)
