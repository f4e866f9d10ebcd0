"""Tables that are put into the cache a little later: whoever opened a file is to see it first.

Until then, and as long as the trace lives, its rows are read from memory. See
docs/decisions/0068-a-picture-before-the-cache.md.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping
from threading import Lock, Timer

import polars as pl

from stepscope.ingest.frames import Frame
from stepscope.ingest.storage.spool import Spooled

AFTER_S = 2.0
"""So long after a file was read, its first picture is drawn."""


class LateTables:
    """What will be in the cache by its key, if it can be: after `AFTER_S`, or as the process ends.

    `keep` puts it there, and gives what holds it there.
    """

    def __init__(self, key: str, frames: Mapping[str, Frame], keep: Callable[[], object]) -> None:
        self.key = key
        rows = {name: f.rows if isinstance(f, Spooled) else f for name, f in frames.items()}
        held = {name: each for name, each in rows.items() if isinstance(each, pl.DataFrame)}
        self._num_rows = {name: len(each) for name, each in held.items()}
        self._keep: Callable[[], object] | None = keep
        self._cached: object = None  # while it lives, its files stay
        self._once = Lock()
        timer = Timer(AFTER_S, self.keep)
        timer.daemon = True  # it is waited for by `keep`, and only where it has begun
        timer.start()
        atexit.register(self.keep)

    def num_rows(self, name: str) -> int:
        """Count the rows of a table."""
        return self._num_rows.get(name, 0)

    def keep(self) -> None:
        """Put the tables into the cache, once; waits where that is under way."""
        with self._once:
            if self._keep is not None:
                self._cached, self._keep = self._keep(), None
        atexit.unregister(self.keep)
