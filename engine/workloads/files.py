"""Workloads from files: ours, those that others publish, and what a trace was asked for.

A file is told by what it says, never by its name, and may be gzipped:

- ours: JSON, `{"requests": [{"id": .., "arrival_ns": .., "prompt_len": .., "max_tokens": ..}]}`,
  with the other fields of `RequestSpec` where they are wanted;
- Azure's and Mooncake's, line by line (`ingest.readers.requests.decode`); the first of Azure's
  arrives at 0;
- a trace: the workload that its manifest holds, or else the arrivals that it tells of.

Whatever is wrong with a file is a ConfigError that says where.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from stepscope.engine.requests.spec import RequestSpec
from stepscope.ingest.errors import ConfigError, RecordingError
from stepscope.ingest.readers.requests.decode import (
    BEYOND,
    AzureRow,
    MooncakeRow,
    is_azure,
    is_mooncake,
    request_name,
)
from stepscope.ingest.times import MS

LIMIT_BYTES = 256 << 20
MAX_LISTED = 1_000  # requests in a manifest; the longer workload is kept beside it
FILE_BESIDE = "manifest.workload.json.gz"
_HEAD_BYTES = 4096
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MEND = "mend the line, or drop it"
_OURS = 'write {"requests": [{"id": .., "arrival_ns": .., "prompt_len": .., "max_tokens": ..}]}'


class Requests(Struct, forbid_unknown_fields=True):
    """Our own format."""

    requests: list[RequestSpec]


class Format(NamedTuple):
    """A kind of file: `looks_so` is asked for its first bytes, `read` gives the requests."""

    name: str
    looks_so: Callable[[bytes], bool]
    read: Callable[[bytes, str], list[RequestSpec]]


def read_requests(path: Path) -> list[RequestSpec]:
    """Return the requests of a file or a trace, in the order in which they stand there."""
    where = str(path)
    if path.is_dir():
        return _of_trace(path, where)
    raw = bytes_of(path, where)
    return next(each for each in FORMATS if each.looks_so(raw[:_HEAD_BYTES])).read(raw, where)


def requests_of(given: Any, where: str) -> list[RequestSpec]:
    """Return the requests of our own format once it has been decoded."""
    with errors_at(where, _OURS):
        return msgspec.convert(given, Requests).requests


def in_manifest(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a manifest holds of a workload: all of it, or where a long one is kept.

    A manifest is read whole whenever its trace is opened.
    """
    num_requests = len(given["requests"])
    is_listed = num_requests <= MAX_LISTED
    return dict(given) if is_listed else {"file": FILE_BESIDE, "requests": num_requests}


def keep_beside(given: Mapping[str, Any], trace: Path) -> None:
    """Write a workload that is too long for the manifest beside it; RecordingError if it fails."""
    if len(given["requests"]) <= MAX_LISTED:
        return
    try:
        (trace / FILE_BESIDE).write_bytes(gzip.compress(msgspec.json.encode(given), mtime=0))
    except OSError as error:
        raise RecordingError(
            f"the workload cannot be written: {error.strerror}", where=str(trace)
        ) from None


@contextmanager
def errors_at(where: str, todo: str = "") -> Iterator[None]:
    """Say where, and what to do instead, of whatever a file of JSON or lines is wrong with."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(error.what, where=where, todo=error.todo) from None
    except msgspec.ValidationError as error:
        raise ConfigError(str(error), where=where, todo=todo) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not UTF-8 text: {error}", where=where, todo=todo) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigError(f"is not JSON: {error}", where=where, todo=todo) from None


def bytes_of(path: Path, where: str) -> bytes:
    """Return what a file holds, unpacked; ConfigError where it cannot be read or is too large."""
    try:
        with path.open("rb") as opened:
            raw = opened.read(LIMIT_BYTES + 1)
        if raw.startswith(b"\x1f\x8b"):
            with gzip.open(io.BytesIO(raw)) as opened:
                raw = opened.read(LIMIT_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ConfigError(f"is a damaged gzip file: {error}", where=where) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=where) from None
    if len(raw) > LIMIT_BYTES:
        raise ConfigError(
            f"holds more than {LIMIT_BYTES >> 20} MiB", where=where, todo="give a part of it"
        )
    return raw


def _ours(raw: bytes, where: str) -> list[RequestSpec]:
    with errors_at(where, _OURS):
        return msgspec.json.decode(raw, type=Requests).requests


def _mooncake(raw: bytes, where: str) -> list[RequestSpec]:
    decoder = msgspec.json.Decoder(MooncakeRow)
    specs: list[RequestSpec] = []
    for number, line in enumerate(io.BytesIO(raw), 1):
        if not line.isspace():
            with errors_at(f"{where}:{number}", _MEND):
                row = decoder.decode(line)
                specs.append(
                    RequestSpec(
                        request_name(len(specs)), round(row.timestamp * MS),
                        row.input_length, row.output_length, prefix=row.hash_ids,
                    )
                )  # fmt: skip
    return specs


def _azure(raw: bytes, where: str) -> list[RequestSpec]:
    rows = list(_azure_rows(raw, where))
    began = min((_utc(row.arrived) for _, row in rows), default=_EPOCH)
    specs: list[RequestSpec] = []
    for line, row in rows:
        with errors_at(line, _MEND):
            arrival_ns = (_utc(row.arrived) - began) // timedelta(microseconds=1) * 1_000
            specs.append(
                RequestSpec(request_name(len(specs)), arrival_ns, row.prompt_len, row.max_tokens)
            )
    return specs


def _azure_rows(raw: bytes, where: str) -> Iterator[tuple[str, AzureRow]]:
    with errors_at(where):
        text = raw.decode()
    lines = csv.DictReader(io.StringIO(text, newline=""), restkey=BEYOND, strict=True)
    try:
        for row in lines:
            where_exactly = f"{where}:{lines.line_num}"
            with errors_at(where_exactly, _MEND):
                yield where_exactly, msgspec.convert(row, AzureRow, strict=False)
    except csv.Error as error:
        raise ConfigError(
            f"is not CSV: {error}", where=f"{where}:{lines.reader.line_num}", todo=_MEND
        ) from None


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


FORMATS = (
    Format("Azure", is_azure, _azure),
    Format("Mooncake", is_mooncake, _mooncake),
    Format("ours", lambda _: True, _ours),
)


def _of_trace(path: Path, where: str) -> list[RequestSpec]:
    from stepscope.ingest.trace import Trace  # noqa: PLC0415 - needs Polars

    trace = Trace.open(path)
    asked = trace.manifest.workload or {}
    if asked.get("file") == FILE_BESIDE:
        return _ours(bytes_of(path / FILE_BESIDE, str(path / FILE_BESIDE)), str(path / FILE_BESIDE))
    if asked:
        return requests_of(asked, where)
    arrivals = trace.lifecycle.filter(event="arrive").select(
        "prompt_len", "max_tokens", "priority", "deadline_ns", id="request", arrival_ns="ts_ns"
    )
    rows = arrivals.collect().to_dicts()
    if not rows:
        raise ConfigError(
            "the trace records no arrival of a request",
            where=where,
            todo="name a trace whose lifecycle has arrivals",
        )
    # A run begins at 0, which is long before any time of a wall clock.
    began = 0 if trace.manifest.clock.kind == "virtual" else min(row["arrival_ns"] for row in rows)
    known = [
        {
            name: value - began if name.endswith("_ns") else value
            for name, value in row.items()
            if value is not None
        }
        for row in rows
    ]
    return requests_of({"requests": known}, where)
