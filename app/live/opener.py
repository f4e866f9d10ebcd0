"""How traces are opened in this process: read once, or followed where one is being recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stepscope.app.live.follower import Follower
from stepscope.ingest.live.growing_trace import is_recording
from stepscope.ingest.progress import Progress
from stepscope.ingest.trace import Trace

Read = Callable[[Path, Progress | None], Trace]
"""Reads what lies at a path, as the options of the command line say, and tells how far it is."""


def read_plainly(path: Path, told: Progress | None = None) -> Trace:
    """Read what lies at a path, without any options."""
    return Trace.open(path, progress=told)


@dataclass(frozen=True, slots=True)
class Begun:
    """A trace as far as it goes, and what follows it where it is being recorded."""

    trace: Trace
    follower: Follower | None = None


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens whatever is asked for, from the command line and from within a front, in one way."""

    read: Read = read_plainly
    follows: bool = True

    def begin(self, path: Path, told: Progress | None = None) -> Begun:
        """Follow what is being recorded at a path, else read what lies there; raises TraceError."""
        follower = _follower_of(path) if self.follows else None
        if follower is not None:
            return Begun(follower.look().trace, follower)
        return Begun(self.read(path, told))


def _follower_of(path: Path) -> Follower | None:
    if not path.is_dir() or not is_recording(path):
        return None
    follower = Follower(path)
    follower.refresh()
    return follower
