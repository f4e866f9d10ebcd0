"""Writing a trace to disk as a whole."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from stepscope.ingest.errors import WriteError
from stepscope.ingest.manifest import write_manifest
from stepscope.ingest.schema import TABLES
from stepscope.ingest.storage.store import holds_trace, parquet_name, write_parquet
from stepscope.ingest.trace import Trace


def save_trace(trace: Trace, out: str | Path) -> None:
    """Write the trace as a `.trace` directory: the old one stands until the new one is whole.

    It is written beside `out` and put there in one rename. Raises `WriteError` where something else
    than a trace is in the way, or it cannot be written. The same rows give the same bytes.
    """
    out = Path(out)
    if out.exists() and not (out.is_dir() and (holds_trace(out) or not any(out.iterdir()))):
        raise WriteError(
            "something that is not a trace has this name",
            where=str(out),
            todo="choose another name",
        )
    draft = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        draft.mkdir(parents=True)
        _write_tables(trace, draft)
        write_manifest(trace.manifest, draft / "manifest.json")
        _swap(draft, out)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise WriteError(f"cannot be written: {why}", where=str(out)) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write_tables(trace: Trace, folder: Path) -> None:
    for table in TABLES:
        rows = trace.table(table.name).collect()
        for (rank,), part in rows.group_by("rank", maintain_order=True):
            write_parquet(part, folder / table.name / f"rank={rank}" / parquet_name(0, 0))


def _swap(draft: Path, out: Path) -> None:
    old = out.with_name(f".{out.name}.{os.getpid()}.old")
    if out.exists():
        out.rename(old)
    try:
        draft.rename(out)
    except OSError:
        if old.exists():
            old.rename(out)
        raise
    shutil.rmtree(old, ignore_errors=True)
