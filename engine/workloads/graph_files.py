"""Task graphs from files: our own JSON, and traces of core groups, recorded by us or by others.

A file is told by what it says, and may be gzipped. Whatever is wrong with one is a ConfigError, or
a TraceError where it is another program's, of one line.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from stepscope.engine.workloads.files import bytes_of, errors_at
from stepscope.engine.workloads.graphs import Graphs, GraphSpec, graph_of
from stepscope.ingest.errors import UnknownFormat

_HEAD_BYTES = 1 << 16
HOW_TO_WRITE = 'write {"tasks": [{"id": .., "shape": "AIV", "dur_ns": .., "after": [..]}]}'
_KEY = re.compile(rb'"(tasks|requests|kernel_ids|aicore_tasks|traceEvents)"\s*:')


def graphs_in(path: Path) -> Graphs | None:
    """Return the task graphs that a file or a trace holds, None where it holds none.

    ConfigError says what is wrong with a graph, and TraceError what is with a trace.
    """
    if not path.is_dir():
        raw = bytes_of(path, str(path))
        if _looks_so(raw[:_HEAD_BYTES]):
            return _ours(raw, path)
    from stepscope.engine.workloads.graph_traces import graphs_of  # noqa: PLC0415 - needs Polars
    from stepscope.ingest.trace import Trace  # noqa: PLC0415 - the same

    try:
        trace = Trace.open(path)
    except UnknownFormat:
        return None
    return graphs_of(trace) if trace.has("tasks") else None


def _looks_so(head: bytes) -> bool:
    """Whether it is an object with tasks that nobody else writes."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return start.startswith(b"{") and set(_KEY.findall(start)) == {b"tasks"}


def _ours(raw: bytes, path: Path) -> Graphs:
    with errors_at(str(path), HOW_TO_WRITE):
        spec = msgspec.json.decode(raw.removeprefix(b"\xef\xbb\xbf"), type=GraphSpec)
        return Graphs((graph_of(spec),), path.name, spec.groups, spec.threads)
