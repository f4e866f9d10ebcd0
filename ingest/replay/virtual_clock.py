"""The time of a replay: it stands still but where it is moved."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Virtual time, in ns of the trace's clock; never goes back."""

    def __init__(self) -> None:
        self.ts_ns = 0
        self._told = 0.0

    def now_ns(self) -> int:
        """Tell the time."""
        return self.ts_ns

    def now(self) -> float:
        """Tell the time in seconds."""
        return self.ts_ns / 1e9

    def later(self) -> float:
        """Tell the time in seconds, each time a little later: who was seen last is told by it."""
        self._told = max(self.now(), math.nextafter(self._told, math.inf))
        return self._told

    def move_to(self, ts_ns: int) -> None:
        """Move on to a time; one that has passed changes nothing."""
        self.ts_ns = max(self.ts_ns, ts_ns)

    @contextmanager
    def for_everybody(self) -> Iterator[None]:
        """Make it the time that a scheduler is told when it asks `time`, as long as this lasts."""
        ours = {
            "time_ns": self.now_ns, "monotonic_ns": self.now_ns, "time": self.now,
            "monotonic": self.later,
        }  # fmt: skip
        theirs = {name: getattr(time, name) for name in ours}
        for name, function in ours.items():
            setattr(time, name, function)
        try:
            yield
        finally:
            for name, function in theirs.items():
                setattr(time, name, function)
