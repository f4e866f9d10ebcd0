"""What a worker does: digests a file, reads and checks a trace, reads a rank, joins a job."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.rule import Rule
from stepscope.analyzers.fleet.fetched import at_hand
from stepscope.analyzers.fleet.messages import (
    Answer,
    Digested,
    Digests,
    Failed,
    Job,
    OneRank,
    OneTrace,
    Outcome,
    Place,
    RankPart,
    Settings,
    Task,
    ToDigest,
)
from stepscope.analyzers.fleet.messages import PartMade as Made
from stepscope.analyzers.fleet.rank_columns import Unpacked, packed, unpacked, why_of
from stepscope.analyzers.many_runs.trace_row import trace_row
from stepscope.ingest.errors import StepscopeError, TraceError
from stepscope.ingest.frames import conformed
from stepscope.ingest.readers import readers
from stepscope.ingest.readers.rank_folder import (
    MERGED,
    UNREADABLE,
    RankFolderReader,
    RankRead,
    together,
)
from stepscope.ingest.trace import Trace

OTHER_VERSION = "a worker has another version of stepscope, or of Polars"
BLOCK_BYTES = 1 << 20


def carried_out(task: Task) -> Answer:
    """Do what is asked; whatever goes wrong is an answer, too."""
    try:
        if isinstance(task, ToDigest):
            return Digests(tuple(_digested(place) for place in task.places))
        rules = _chosen(msgspec.msgpack.encode(task.settings))
        return Failed(OTHER_VERSION, is_setup=True) if rules is None else _answer(task, rules)
    except Exception as error:  # one file of thousands is no reason to stop
        return Failed(reason_of(error))
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # Polars met what it did not expect
            raise
        return Failed(reason_of(error))


@lru_cache(maxsize=2)
def _chosen(settings: bytes) -> tuple[Rule, ...] | None:
    """The rules of settings, which thousands of tasks share; None where other code made these."""
    told = msgspec.msgpack.decode(settings, type=Settings)
    return told.chosen() if told.is_of_this_code() else None


def _answer(task: OneTrace | OneRank | Job, rules: tuple[Rule, ...]) -> Answer:
    if isinstance(task, Job):
        return _joined(task, rules)
    with at_hand(task.place) as path:
        if isinstance(task, OneTrace):
            trace = Trace.open(path, limits=task.settings.limits, cached=False)
            return _outcome(trace, task.name, rules)
        read = _folder_reader().read_one(path, limits=task.settings.limits)
        return Made(packed(read, rules), why_of(read))


def reason_of(error: BaseException) -> str:
    """Why a file cannot be read, in one line without the file's name."""
    if isinstance(error, StepscopeError):
        return error.what
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory for it"
    said = f"{type(error).__name__}: {error}".partition("\n")[0]
    if isinstance(error, pl.exceptions.ComputeError) and str(error).startswith("parquet:"):
        return f"the trace's files are damaged: {error}".partition("\n")[0]
    return f"a bug in stepscope: {said}"


def _outcome(
    trace: Trace, name: str, rules: tuple[Rule, ...], gpus: pl.DataFrame | None = None
) -> Outcome:
    checked = replace(check(trace, rules), trace=name)
    row = trace_row(trace, name, checked, gpus=gpus)
    return Outcome({key: _plain(value) for key, value in row.items()}, checked.findings)


def _plain(value: Any) -> Any:
    """A text as any file can hold it."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


@cache
def _folder_reader() -> RankFolderReader:
    *_, folder = readers()
    assert isinstance(folder, RankFolderReader)
    return folder


def _joined(job: Job, rules: tuple[Rule, ...]) -> Outcome:
    """What `check` and `summary` say of the folder, of what its ranks' parts hold."""
    parts = list(map(_part, job.parts))
    folder = Path(job.name)
    tables, manifest = together(folder, (part.read for part in parts), job.num_beyond)
    is_without_merged = bool(manifest.report and MERGED in manifest.report.skipped)
    gpus = [
        part.gpus
        for part in parts
        if part.gpus is not None and not (is_without_merged and _is_merged(part))
    ]
    trace = Trace(conformed(tables), manifest, folder.name, folder).in_memory()
    return _outcome(trace, job.name, rules, pl.concat(gpus) if gpus else None)


def _part(part: RankPart) -> Unpacked:
    if part.part is None:
        return Unpacked(RankRead(part.name, skipped=UNREADABLE, why=part.why), None)
    return unpacked(Path(os.fsdecode(part.part)).read_bytes())


def _is_merged(part: Unpacked) -> bool:
    return part.read.found is not None and "merged_ranks" in part.read.found.manifest.config


def _digested(place: Place) -> Digested:
    """Digest a file's bytes, or the names and bytes of all files below a folder."""
    try:
        with at_hand(place) as path:
            if not path.is_dir():
                return Digested(*_digest(path))
            digest, num_bytes = hashlib.sha256(), 0
            for file in _files_below(path):
                of_file, size = _digest(file)
                name = os.fsencode(file.relative_to(path))
                digest.update(len(name).to_bytes(8) + name + bytes.fromhex(of_file))
                num_bytes += size
            return Digested(digest.hexdigest(), num_bytes)
    except (OSError, TraceError) as error:
        return Digested(why=reason_of(error))


def _files_below(folder: Path) -> Iterator[Path]:
    for inside, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(inside, name) for name in sorted(names) if Path(inside, name).is_file())


def _digest(file: Path) -> tuple[str, int]:
    if not file.is_file():
        raise TraceError("no such file or directory" if not file.exists() else "it is no file")
    digest, num_bytes = hashlib.sha256(), 0
    with file.open("rb") as opened:
        while block := opened.read(BLOCK_BYTES):
            digest.update(block)
            num_bytes += len(block)
    return digest.hexdigest(), num_bytes
