"""Where the engine gets its time from."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Something that tells the time."""

    def now_ns(self) -> int:
        """Return the time in nanoseconds since the clock's epoch."""
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
