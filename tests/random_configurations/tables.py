"""A trace as a plain program sees it: a list of dicts for each table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from typing import Any

from stepscope.ingest.trace import Trace

Row = dict[str, Any]


class Tables:
    """The rows of a trace, by table, and what its engine was told before it started."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._rows: dict[str, list[Row]] = {}

    def __getitem__(self, table: str) -> list[Row]:
        """The rows of a table, in the order of the trace."""
        if table not in self._rows:
            self._rows[table] = self._trace.table(table).collect().to_dicts()
        return self._rows[table]

    @property
    def config(self) -> dict[str, Any]:
        """What the engine was told."""
        return self._trace.manifest.config

    @cached_property
    def arrivals(self) -> dict[str, Row]:
        """When each request came, with what it asked for."""
        return {row["request"]: row for row in self["lifecycle"] if row["event"] == "arrive"}

    @cached_property
    def events(self) -> dict[str, list[Row]]:
        """What happened to each request, in order."""
        ordered = sorted(self["lifecycle"], key=lambda row: row["ts_ns"])
        return grouped(ordered, lambda row: row["request"])

    @cached_property
    def steps_of(self) -> dict[str, set[int]]:
        """The steps in whose batch each request was."""
        rows = grouped(self["batch_rows"], lambda row: row["request"])
        return {request: {row["step"] for row in of} for request, of in rows.items()}

    def age(self, request: str) -> tuple[int, int, int]:
        """Who is before whom: by priority, then by arrival and place in the queue."""
        arrived = self.arrivals[request]
        return arrived["priority"] or 0, arrived["ts_ns"], arrived["queue_index"] or 0

    def decisions(self, verdict: str) -> list[Row]:
        """Decisions about requests with that verdict."""
        about = (row for row in self["decisions"] if row["subject_kind"] == "request")
        return [row for row in about if row["verdict"] == verdict]


def grouped(rows: Iterable[Row], key: Callable[[Row], Hashable]) -> dict[Any, list[Row]]:
    """Rows by what `key` says of them, each group in the order of the rows."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return dict(groups)
