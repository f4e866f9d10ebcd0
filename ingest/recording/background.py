"""What the recorder does beside the engine: the next segment made ready, full ones compacted.

A thread of the standard library prepares files, so that no row waits for the disk. Compaction is
the work of another process at the lowest priority: it needs Polars, whose import and threads
would hold the engine's interpreter lock for milliseconds (docs/decisions/0001). The two are
joined by a pipe; when the engine dies, the pipe ends, and the other process finishes its journal.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

from stepscope.ingest.manifest import Writer
from stepscope.ingest.recording.journal import Stream

PATIENCE_S = 60.0
WORTH_BYTES = 4 << 20
"""Smaller segments are left to the end: a short recording needs no process beside it."""


class Background:
    """A thread that takes full segments, started with the first of them."""

    def __init__(self, compactor: Compactor) -> None:
        self._compactor = compactor
        self._full: SimpleQueue[tuple[Stream, Path] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def sealed(self, stream: Stream, file: Path) -> None:
        """Take note of a full segment; never waits."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="stepscope", daemon=True)
            self._thread.start()
        self._full.put((stream, file))

    def finish(self) -> None:
        """Wait until the thread has seen to all segments."""
        if self._thread:
            self._full.put(None)
            self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        while full := self._full.get():
            stream, file = full
            # A full disk is met again, and told, where a row needs the segment.
            with suppress(OSError):
                stream.prepare()
                if stream.stands_for_many or file.stat().st_size >= WORTH_BYTES:
                    self._compactor.compact_segment(file)


class Compactor:
    """The other process, started when there is something for it to do.

    Whatever keeps it from running or from finishing, the journal is whole and can be opened.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_refused = False

    def compact_segment(self, file: Path) -> None:
        """Ask for one full segment."""
        self._ask({"segment": str(file)})

    def compact_writer(self, trace: Path, writer: Writer) -> None:
        """Ask for all that is left of a writer's closed journal."""
        self._ask({"trace": str(trace), "writer": str(writer)})

    def finish(self) -> None:
        """Wait until all that was asked for is done, within `PATIENCE_S`."""
        if self._process is None:
            return
        self._ask({})
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.let_go()

    def let_go(self) -> None:
        """Close our end of the pipe."""
        with suppress(OSError):
            if self._process and self._process.stdin:
                self._process.stdin.close()
        self._process, self._is_refused = None, True

    def _ask(self, request: dict[str, str]) -> None:
        with suppress(OSError, ValueError):
            if self._process is None and not self._is_refused:
                self._is_refused = True
                self._process = _started()
            if self._process and self._process.stdin:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - this interpreter, our own module
        [sys.executable or "python3", "-P", "-m", "stepscope.ingest.recording.compactor"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "POLARS_MAX_THREADS": "1"},
        start_new_session=True,
    )
