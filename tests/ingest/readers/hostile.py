"""Hostile files: a reader refuses them in an error of ours, or all that it gives can be used."""

from __future__ import annotations

from pathlib import Path

from stepscope.ingest.errors import TraceError
from stepscope.ingest.readers.seam import Reader
from stepscope.ingest.trace import Trace


def use_or_refuse(reader: Reader, file: Path) -> None:
    """Read a file, known or not, and use all that comes out of it."""
    reader.sniff(file.read_bytes()[:1000], file)
    try:
        tables, manifest = reader.read(file, None)
    except TraceError as error:
        assert str(error)  # noqa: PT017 - any TraceError will do
        return
    trace = Trace.from_tables(tables, manifest)
    repr(trace)
    manifest.to_json().encode()
    for name in tables:
        trace.table(name).collect()
