"""Runs of the reference engine, each recorded once for all processes and all runs of the tests.

A run is identified by its scenario, variant and options, so that every test that needs the same run
gets the same trace. No test may write into it. Runs are cached in a folder that is named for a
digest of the source that records them, and survive until that source changes.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from stepscope.engine.runs.rerun import run_to_its_end
from stepscope.engine.runs.scenario import Options, RunResult
from stepscope.engine.scenarios import scenario
from stepscope.ingest.trace import Trace

if sys.platform != "win32":
    import fcntl

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (
    "engine", "ingest/*", "ingest/recording", "ingest/storage", "ingest/readers/*",
    "ingest/readers/encodings", "ingest/readers/requests",
)  # fmt: skip
"""What records a run: folders with all in them, or with `/*` their own files alone."""
PACKAGES = ("stepscope", "numpy", "polars", "torch")
"""Packages whose version may change what is recorded."""

Stamp = tuple[str, int, int]


@dataclass(frozen=True)
class RecordedOnce:
    """A cache of runs in a folder that processes share."""

    folder: Path

    def trace(self, name: str, variant: str, options: Options | None = None) -> Trace:
        """Open the trace of a run of a variant."""
        result = self.run(name, variant, options)
        assert result.path is not None
        return Trace.open(result.path)

    def run(self, name: str, variant: str, options: Options | None = None) -> RunResult:
        """Return the result of a run of a variant, with the path of its trace.

        `stopped` of the result is set where a batch could not be executed.
        """
        entry = self.folder / _key(name, variant, options or Options())
        while (result := _result(entry)) is None:
            self._record(name, variant, options or Options(), entry)
        return replace(result, path=entry / "run.trace")

    def _record(self, name: str, variant: str, options: Options, entry: Path) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f"{entry.name}.", dir=self.folder))
        try:
            result = run_to_its_end(scenario(name), variant, draft / "run.trace", options)
            stamps = _stamps(draft / "run.trace")
            (draft / "result").write_bytes(pickle.dumps((replace(result, path=None), stamps)))
            if entry.exists() and _result(entry) is None:
                entry.rename(draft / "damaged")
            draft.rename(entry)
        except OSError:
            if _result(entry) is None:  # else another process was first
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def shared_runs(parent: Path, source_digest: str) -> Iterator[RecordedOnce]:
    """Open the cache for a digest; runs of other digests are removed, unless another process runs.

    What a killed process left unfinished is removed as well.
    """
    parent.mkdir(parents=True, exist_ok=True)
    folder = parent / source_digest
    lock = os.open(parent / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if _lock_alone(lock):
            unfinished = folder.glob("*.*")
            others = (other for other in parent.iterdir() if other.is_dir() and other != folder)
            for path in (*others, *unfinished):
                shutil.rmtree(path, ignore_errors=True)
        _lock_shared(lock)
        yield RecordedOnce(folder)
    finally:
        os.close(lock)


@lru_cache
def recording_digest() -> str:
    """Return the digest of all that decides what a run records: source, packages, interpreter."""
    return digest(source_files(ROOT), [sys.version, platform.machine(), *map(_version, PACKAGES)])


def source_files(root: Path) -> Iterator[Path]:
    """Every file of the SOURCES below a root, in order."""
    for source in SOURCES:
        pattern = "*" if source.endswith("/*") else "**/*"
        for path in sorted((root / source.removesuffix("/*")).glob(pattern)):
            if path.parent.name != "__pycache__" and path.is_file():
                yield path


def digest(files: Iterable[Path], words: Iterable[str] = ()) -> str:
    """Return a digest of the names and contents of files, and of words."""
    total = hashlib.sha256(repr(list(words)).encode())
    for file in files:
        total.update(f"{file.name}:{file.stat().st_size}:".encode())
        total.update(file.read_bytes())
    return total.hexdigest()[:16]


def _key(name: str, variant: str, options: Options) -> str:
    assert options.observer is None, "a cached run has no observer"
    assert not isinstance(options.workload, Path), "the contents of a file may change"
    settings, faults = sorted(options.settings.items()), sorted(options.faults)
    plain = replace(options, settings={}, faults=frozenset())
    return hashlib.sha256(repr((name, variant, plain, settings, faults)).encode()).hexdigest()[:16]


def _result(entry: Path) -> RunResult | None:
    """Return the result of a cached run; None where there is none, or its trace was changed."""
    try:
        result, stamps = pickle.loads((entry / "result").read_bytes())  # noqa: S301 - our own file
    except Exception:  # a damaged pickle raises anything
        return None
    assert isinstance(result, RunResult)
    return result if stamps == _stamps(entry / "run.trace") else None


def _stamps(trace: Path) -> list[Stamp]:
    """Name, size and time of each file of a trace: another list is another trace."""
    files = ((str(file.relative_to(trace)), file.stat()) for file in sorted(trace.rglob("*")))
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in files]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _lock_alone(lock: int) -> bool:
    """Tell whether no other process has the lock; takes it then."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _lock_shared(lock: int) -> None:
    if sys.platform != "win32":
        fcntl.flock(lock, fcntl.LOCK_SH)
