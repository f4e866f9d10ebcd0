"""Where the engine gets its time from."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Something that tells the time of the run, and lets it pass."""

    def now_ns(self) -> int:
        """Return the time in nanoseconds since the run began."""
        ...

    def advance(self, ns: int) -> int:
        """Let `ns` nanoseconds pass and return the new time."""
        ...

    def advance_to(self, ts_ns: int) -> int:
        """Let the time pass until `ts_ns`, unless that is in the past, and return the time."""
        ...


class VirtualClock:
    """A clock that only moves when somebody advances it, so the same run takes the same time."""

    __slots__ = ("_now_ns",)

    def __init__(self, start_ns: int = 0) -> None:
        self._now_ns = start_ns

    def now_ns(self) -> int:
        """Return the time in nanoseconds since the run began."""
        return self._now_ns

    def advance(self, ns: int) -> int:
        """Move `ns` nanoseconds on and return the new time; time never runs backwards."""
        if ns < 0:
            raise ValueError(f"a clock cannot be advanced by {ns} ns")
        self._now_ns += ns
        return self._now_ns

    def advance_to(self, ts_ns: int) -> int:
        """Move on to `ts_ns`, or stay where that is in the past, and return the time."""
        self._now_ns = max(self._now_ns, ts_ns)
        return self._now_ns


class WallClock:
    """The time that really passes, from 0 at `epoch_ns`: who advances it waits that long."""

    __slots__ = ("_now", "_sleep", "epoch_ns")

    def __init__(
        self,
        now_ns: Callable[[], int] = time.time_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._now = now_ns
        self._sleep = sleep
        self.epoch_ns = now_ns()

    def now_ns(self) -> int:
        """Return the time in nanoseconds since the run began."""
        return self._now() - self.epoch_ns

    def stop(self) -> None:
        """Stand still from now on: what comes after the run takes none of its time."""
        stopped_at = self._now()
        self._now = lambda: stopped_at

    def advance(self, ns: int) -> int:
        """Wait `ns` nanoseconds and return the new time."""
        if ns < 0:
            raise ValueError(f"a clock cannot be advanced by {ns} ns")
        self._sleep(ns / 1e9)
        return self.now_ns()

    def advance_to(self, ts_ns: int) -> int:
        """Wait until `ts_ns`, unless that is in the past, and return the time."""
        return self.advance(max(0, ts_ns - self.now_ns()))
