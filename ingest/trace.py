"""A trace in memory: its tables as Polars LazyFrames, with SQL over them.

>>> trace = Trace.open("run.trace")                                     # doctest: +SKIP
>>> trace.steps.filter(pl.col("kind") == "mixed").collect()             # doctest: +SKIP
>>> trace.sql("select kind, count(*) from steps group by kind")         # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.ingest.errors import MissingExtra
from stepscope.ingest.frames import Frame, conformed, empty, table_named
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.opening import read
from stepscope.ingest.progress import Progress
from stepscope.ingest.schema import TABLES

if TYPE_CHECKING:
    from stepscope.ingest.query import Bounds
    from stepscope.ingest.storage.cached_tables import CachedTables
    from stepscope.ingest.storage.late_tables import LateTables

Window = tuple[int, int] | None


FIGURES = "stepscope.app.notebook"
"""Draws figures. It is known by its name alone, as what is here imports nothing of the rooms above
(docs/decisions/0112)."""
FINDINGS = "stepscope.app.queried_findings"
"""Checks what a query asks of findings. It is known by its name alone, too."""


def _figures() -> Any:
    try:
        return import_module(FIGURES)
    except ImportError as missing:
        if missing.name not in {"dash", "plotly"}:
            raise
        todo = "pip install 'stepscope[web]'"
        raise MissingExtra("figures need Plotly and Dash", todo=todo) from missing


class Trace:
    """What one run of an engine left behind: a manifest and one LazyFrame per table.

    Every table of the schema is there as an attribute, with exactly the schema's columns and
    types; a table that the trace does not have is empty.
    """

    steps: pl.LazyFrame
    batch_rows: pl.LazyFrame
    segments: pl.LazyFrame
    lifecycle: pl.LazyFrame
    decisions: pl.LazyFrame
    allocations: pl.LazyFrame
    accesses: pl.LazyFrame
    tasks: pl.LazyFrame
    core_spans: pl.LazyFrame
    core_waits: pl.LazyFrame
    ready_order: pl.LazyFrame
    thread_phases: pl.LazyFrame
    task_edges: pl.LazyFrame
    collectives: pl.LazyFrame
    outputs: pl.LazyFrame
    spans: pl.LazyFrame
    flows: pl.LazyFrame
    counters: pl.LazyFrame
    queue_order: pl.LazyFrame
    slot_tokens: pl.LazyFrame

    def __init__(
        self,
        frames: Mapping[str, pl.LazyFrame],
        manifest: Manifest,
        name: str,
        path: Path | None = None,
    ) -> None:
        self.name = name
        self.path = path
        self.manifest = manifest
        self.may_be_cached = False  # only what is in its files as it is may be
        self._num_rows: dict[str, int] = {}
        self._held: Mapping[str, pl.LazyFrame] = {}
        # While it lives, its files stay.
        self._in_cache: CachedTables | LateTables | None = None
        for table in TABLES:
            setattr(self, table.name, frames[table.name] if table.name in frames else empty(table))

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        progress: Progress | None = None,
        limits: Limits = DEFAULTS,
        cached: bool = True,
    ) -> Trace:
        """Open a `.trace` directory or any file that a reader knows.

        What is read of another format is put into the user's cache, unless `cached` is false.
        Raises `TraceError` (`UnknownFormat` when no reader recognises it); an unclosed trace is
        recovered as far as it goes, and its manifest says so.
        """
        file = Path(path)
        found = read(file, progress, limits, cached=cached)
        trace = cls(found.frames, found.manifest, file.resolve().name, file)
        trace._in_cache, trace.may_be_cached = found.in_cache, cached
        trace._held = found.held
        return trace

    @classmethod
    def from_tables(
        cls, tables: Mapping[str, Frame], manifest: Manifest, *, name: str = "trace"
    ) -> Trace:
        """Make a trace of frames; what may be null is filled in, `rank` with 0.

        Raises `SchemaMismatch` for a table or column that is unknown, mistyped, or required and
        missing.
        """
        return cls(conformed(tables), manifest, name)

    @property
    def cached_as(self) -> str | None:
        """What the rows are known by in the user's cache; None where they are not from there."""
        return self._in_cache.key if self._in_cache else None

    def replacing(self, frames: Mapping[str, pl.LazyFrame], manifest: Manifest) -> Trace:
        """Give the trace another manifest, and some tables other frames of its own rows."""
        replaced = Trace(
            {table.name: self.table(table.name) for table in TABLES} | {**frames},
            manifest, self.name, self.path,
        )  # fmt: skip
        replaced._in_cache, replaced._num_rows = self._in_cache, self._num_rows
        replaced._held = {name: self._held[name] for name in self._held.keys() - frames}
        return replaced

    def in_memory(self) -> Trace:
        """Give the same trace with all its rows read, for who asks hundreds of times.

        Each table is in one piece: a thousand ranks are as many pieces, which every answer keeps.
        """
        names = [table.name for table in TABLES]
        frames = pl.collect_all(map(self.table, names))
        read = {name: frame.rechunk() for name, frame in zip(names, frames, strict=True)}
        held = self.replacing({name: frame.lazy() for name, frame in read.items()}, self.manifest)
        held._num_rows = {name: frame.height for name, frame in read.items()}
        return held

    def table(self, name: str) -> pl.LazyFrame:
        """Give a table by name; raises `SchemaMismatch` where there is none of that name."""
        frame: pl.LazyFrame = getattr(self, table_named(name).name)
        return frame

    def as_held(self, name: str) -> pl.LazyFrame:
        """Give a table by name, whose text may be Enums: no text is looked at where it is so held.

        That is as its reader left it, of a large file that was just read.
        """
        return self._held.get(name, self.table(name))

    def num_rows(self, name: str) -> int:
        """Count the rows of a table; counted once."""
        if name not in self._num_rows:
            rows, cached = self.table(name), self._in_cache
            self._num_rows[name] = (
                cached.num_rows(name) if cached else int(rows.select(pl.len()).collect().item())
            )
        return self._num_rows[name]

    def rows_by_table(self) -> dict[str, int]:
        """Count the rows of all tables."""
        names = [table.name for table in TABLES]
        if not self._in_cache and (
            unknown := [name for name in names if name not in self._num_rows]
        ):
            counts = pl.collect_all(self.table(name).select(pl.len()) for name in unknown)
            self._num_rows |= {
                name: int(found.item()) for name, found in zip(unknown, counts, strict=True)
            }
        return {name: self.num_rows(name) for name in names}

    def has(self, name: str) -> bool:
        """Tell whether the trace has a row of that table."""
        return self.num_rows(name) > 0

    def start_ns(self) -> int:
        """Find the earliest time of any row, 0 when there is none: times are shown from there."""
        earliest = [self.table(table.name).select(pl.col("ts_ns").min()) for table in TABLES]
        found = [frame.item() for frame in pl.collect_all(earliest)]
        return min((ts_ns for ts_ns in found if ts_ns is not None), default=0)

    def sql(self, query: str, bounds: Bounds | None = None) -> pl.DataFrame:
        """Run an SQL query over the tables, the intervals that are made of them, and `findings`.

        The rules run when a query first names `findings`. With `bounds` it goes only so far.
        Raises `QueryError` naming near matches.
        """
        from stepscope.ingest.derive.holding_intervals import intervals_of  # noqa: PLC0415 - few ask
        from stepscope.ingest.query import names_table, run_sql  # noqa: PLC0415 - few ask

        tables = {table.name: self.table(table.name) for table in TABLES}
        asked = {**tables, **intervals_of(tables)}
        if names_table(query, "findings"):
            asked["findings"] = import_module(FINDINGS).findings_of(self)
        return run_sql(asked, query, bounds, also=() if "findings" in asked else ("findings",))

    def timeline(self, finding: Any = None, *, window: Window = None) -> Any:
        """Draw the lanes as a Plotly figure, which a notebook shows: spans by their state.

        With a `finding` of `check` it is what is around that; `window` is (t0, t1) in ns from the
        beginning of the trace. At most 60 lanes are shown, and none of the counters; a lane of more
        than 1,000 spans is shown by what takes most of each of 1,000 pixels.

        Raises `MissingExtra` without Plotly and Dash, and `ConfigError` where nothing can be shown.
        """
        return _figures().timeline_figure(self, finding, window)

    def blame(self, most: int = 40) -> Any:
        """Draw what the `most` slowest requests were in, over time, as a Plotly figure.

        A trace that names no requests has a bar for each rank. Raises `MissingExtra` without Plotly
        and Dash, and `ConfigError` where there is nothing to blame.
        """
        return _figures().blame_figure(self, most)

    def __repr__(self) -> str:
        from stepscope.ingest.display import as_text  # noqa: PLC0415 - few ask

        return as_text(self.name, self.manifest, self.steps, self.rows_by_table())

    def _repr_html_(self) -> str:
        from stepscope.ingest.display import as_html  # noqa: PLC0415 - as a notebook does

        return as_html(self.name, self.manifest, self.steps, self.rows_by_table())
