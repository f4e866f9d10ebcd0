"""A trace as a `.trace` directory of Parquet files, which holds all of it."""

from __future__ import annotations

from pathlib import Path

from stepscope.ingest.storage.saving import save_trace
from stepscope.ingest.trace import Trace


class NativeWriter:
    """Our own format: every table, and the manifest."""

    endings = (".trace",)

    def write(self, trace: Trace, out: Path) -> None:
        """Save the trace; see `save_trace`."""
        save_trace(trace, out)
