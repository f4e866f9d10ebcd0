"""The `.trace` directory that the recorder writes: Parquet per table and rank, and a journal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.ingest.frames import Frame
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.store import holds_trace, load_trace

if TYPE_CHECKING:
    from stepscope.ingest.trace import Progress


class NativeReader:
    """Reads a trace directory, finished or not; an unclosed one is recovered and says so."""

    name = "stepscope trace directory (.trace)"

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell whether the directory holds a manifest or a journal of ours."""
        return path.is_dir() and holds_trace(path)

    def read(self, path: Path, progress: Progress | None) -> tuple[Mapping[str, Frame], Manifest]:
        """Scan the Parquet files and recover what is only in the journal; raises `TraceError`."""
        return load_trace(path, progress)
