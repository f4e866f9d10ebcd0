"""What torch.profiler calls when a trace is ready: it writes a file that any reader opens.

Standard library only, as it runs in an engine.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

SUFFIX, PACKED = ".pt.trace.json", ".gz"


class Profile(Protocol):
    """What `torch.profiler.profile` gives to whom it calls."""

    def export_chrome_trace(self, path: str) -> object:
        """Write the trace, compressed where the name ends in `.gz`."""


def trace_handler(
    dir_name: str | os.PathLike[str], worker_name: str | None = None, *, use_gzip: bool = False
) -> Callable[[Profile], None]:
    """Make what `torch.profiler.profile(on_trace_ready=...)` calls with each trace.

    As `torch.profiler.tensorboard_trace_handler` it writes
    `<worker_name>.<nanoseconds>.pt.trace.json` into `dir_name`, with `.gz` behind it if asked;
    `worker_name`, of each process its own, is `<host>_<pid>` unless told. The file is there when
    it is whole, and not before: who watches the folder never reads half of one. Raises
    `RuntimeError` where the folder cannot be made, as torch's does.
    """
    folder = Path(dir_name)

    def handle(profile: Profile) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"cannot make the folder {folder}: {error.strerror}") from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}{SUFFIX}{PACKED if use_gzip else ''}"
        draft = folder / f".draft.{name}"
        try:
            profile.export_chrome_trace(str(draft))
            draft.replace(folder / name)
        finally:
            draft.unlink(missing_ok=True)

    return handle
