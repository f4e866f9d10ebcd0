"""The formats that a trace can be read from: a folder each, one line in `READERS`.

Each folder has the same stages, as far as the format needs them: `split` finds records in bytes,
`decode` says what a record tells, `collect` keeps what is needed of all, `tables` makes the tables;
`reader` runs them and says what became of every record. What formats share lies beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from stepscope.ingest.errors import TraceError, UnknownFormat
from stepscope.ingest.readers.encodings.inflate import inflated
from stepscope.ingest.readers.seam import HEAD_BYTES, Reader

READERS = (
    "native.reader.NativeReader",
    "swimlane.reader.SwimlaneReader",
    "chrome.reader.ChromeReader",
    "kv_events.reader.KvEventsReader",
    "forward_pass.reader.ForwardPassReader",
    "perfetto.reader.PerfettoReader",
    "requests.reader.RequestsReader",
    "samples.reader.SamplesReader",
    "core_runtime.reader.RuntimeLogReader",
    "nsys.reader.NsysReader",
    "rocpd.reader.RocpdReader",
    "rocprofv3.reader.Rocprofv3Reader",
    "xplane.reader.XPlaneReader",
    "otlp.reader.OtlpReader",
    "jaeger.reader.JaegerReader",
    "benchmark.reader.BenchmarkReader",
    "logs.reader.EngineLogReader",
    "stat_lines.reader.StatLinesReader",
    "prometheus.reader.PrometheusReader",
)
"""Module and class of each, in the order in which they are tried."""


def readers() -> Iterator[Reader]:
    """Give one after the other, imported in its turn: all take longer than a small file to read.

    Those of other packages come behind ours. The last reads folders of files that the others have
    one of per rank.
    """
    found: list[Reader] = []
    for name in READERS:
        module, _, reader = name.rpartition(".")
        found.append(getattr(import_module(f"{__name__}.{module}"), reader)())
        yield found[-1]
    for other in import_module(f"{__name__}.installed").installed():
        found.append(other)
        yield other
    yield import_module(f"{__name__}.rank_folder").RankFolderReader(found)


def reader_of(path: Path) -> Reader:
    """Find the reader for a file or directory by its content; raises `TraceError`."""
    head = _head(path)
    for reader in readers():
        if reader.sniff(head, path):
            return reader
    refusal: UnknownFormat | None
    if refusal := import_module(f"{__name__}.foreign").refusal_of(head, path):
        raise refusal
    what = "the directory holds no trace" if path.is_dir() else "the file's format is not known"
    known = ", ".join(reader.name for reader in readers())
    raise UnknownFormat(what, where=str(path), todo=f"formats that can be read: {known}")


def _head(path: Path) -> bytes:
    try:
        if path.is_dir():
            next(path.iterdir(), None)  # raises where the directory may not be read
            return b""
        if path.exists() and not path.is_file():
            raise TraceError("neither a file nor a directory", where=str(path))
        with path.open("rb") as file:
            start = file.read(HEAD_BYTES)
    except FileNotFoundError:
        raise TraceError("no such file or directory", where=str(path)) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise TraceError(f"cannot be read: {why}", where=str(path)) from None
    if not start:
        raise TraceError("the file is empty", where=str(path))
    return inflated(start, HEAD_BYTES)
