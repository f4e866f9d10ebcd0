"""What the recorder does beside the engine: the next segment made ready, full ones compacted.

A thread of the standard library prepares files, so that no row waits for the disk. Compaction is
the work of another process at the lowest priority: it needs Polars, whose import and threads
would hold the engine's interpreter lock for milliseconds (docs/decisions/0001). The two are
joined by a pipe; when the engine dies, the pipe ends and so does the other process.
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

from stepscope.ingest.journal import Stream

PATIENCE_S = 30.0
_COMMAND = ("-P", "-m", "stepscope.ingest.compaction")


class Background:
    """One thread and one process for a recorder, started when the first segment is full."""

    def __init__(self) -> None:
        self._full: SimpleQueue[tuple[Stream, Path] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._compactor: subprocess.Popen[bytes] | None = None
        self._is_refused = False

    def sealed(self, stream: Stream, file: Path) -> None:
        """Take note of a full segment; never waits."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="stepscope", daemon=True)
            self._thread.start()
        self._full.put((stream, file))

    def finish(self) -> None:
        """Let the process compact what it was given, and wait for it, within `PATIENCE_S`."""
        if self._thread:
            self._full.put(None)
            self._thread.join(PATIENCE_S)
        if self._compactor:
            self._send(self._compactor, b"\n")
            try:
                self._compactor.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._compactor.kill()
                self._compactor.wait()
            self._close_pipe()

    def disown(self) -> None:
        """Let go of the parent's pipe in a forked process."""
        self._close_pipe()
        self._thread = self._compactor = None

    def _run(self) -> None:
        while full := self._full.get():
            stream, file = full
            # A full disk is met, and told, where a row needs the segment.
            with suppress(OSError):
                stream.prepare()
            self._offer(file)

    def _offer(self, file: Path) -> None:
        # Whatever keeps the process from running, the journal is whole and is compacted on close.
        if self._compactor is None and not self._is_refused:
            try:
                self._compactor = _started()
            except OSError:
                self._is_refused = True
        if self._compactor:
            self._send(self._compactor, json.dumps(str(file)).encode() + b"\n")

    def _send(self, compactor: subprocess.Popen[bytes], line: bytes) -> None:
        with suppress(OSError, ValueError):
            if compactor.stdin:
                compactor.stdin.write(line)
                compactor.stdin.flush()

    def _close_pipe(self) -> None:
        with suppress(OSError):
            if self._compactor and self._compactor.stdin:
                self._compactor.stdin.close()


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - this interpreter, our own module
        [sys.executable or "python3", *_COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "POLARS_MAX_THREADS": "1"},
        start_new_session=True,
    )
