"""Which time of B lies where on the time of A: whole ns, and never backwards.

Between two anchors time is stretched evenly, before the first and after the last it goes on as it
is. An anchor of A is where its partner in B is, to the nanosecond.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stepscope.app.timeline.lanes.lane import Ints
from stepscope.app.units import tick_step


class Ruler(NamedTuple):
    """Round times of B that are `step` ns apart; `last` is the end of what B has in a window."""

    step: int
    last: int
    own: list[int]
    """Since B's begin."""
    on_a: list[int]
    """Where each of them lies on the time of A: several may lie at one."""


@dataclass(frozen=True, slots=True)
class TimeMap:
    """Times of A and those of B that lie on them; both rise, and there is one pair at least."""

    a: Ints
    b: Ints

    @classmethod
    def through(cls, anchors: Iterable[tuple[int, int]]) -> TimeMap:
        """The map through pairs of times, by the time of A; who would go backwards is left out."""
        kept: list[tuple[int, int]] = []
        for a, b in sorted(anchors):
            if not kept or (a > kept[-1][0] and b > kept[-1][1]):
                kept.append((a, b))
        assert kept
        both = np.array(kept, np.int64)
        return cls(both[:, 0].copy(), both[:, 1].copy())

    def to_b(self, times: Ints) -> Ints:
        """The times of B on times of A; rises wherever these do, or stays where it is."""
        return _mapped(times, self.a, self.b)

    def to_a(self, times: Ints) -> Ints:
        """The first times of A at which B has come as far: of each anchor its partner.

        Where A and B go as fast it undoes `to_b`; `to_b` of it is never earlier.
        """
        found = _mapped(times, self.b, self.a)
        # Rounded down it is at most 1 ns early, and a double may be off by one more.
        for _ in range(3):
            found = np.where(self.to_b(found) < times, found + 1, found)
        for _ in range(3):
            found = np.where(self.to_b(found - 1) >= times, found - 1, found)
        return found

    def b_at(self, ts_ns: int) -> int:
        """The time of B on a time of A."""
        return int(self.to_b(np.array([ts_ns], np.int64))[0])

    def a_at(self, ts_ns: int) -> int:
        """The first time of A on which a time of B lies."""
        return int(self.to_a(np.array([ts_ns], np.int64))[0])

    def ruler(self, begin: int, first: int, last: int, most: int) -> Ruler:
        """The times of B between two of its own, since its `begin`, at most so many."""
        step = tick_step(last - first, most)
        own = [*range(-(-(first - begin) // step) * step, last - begin, step)]
        on_a = self.to_a(np.array(own, np.int64) + begin).tolist() if own else []
        return Ruler(step, last - begin, own, on_a)


def _mapped(times: Ints, source: Ints, target: Ints) -> Ints:
    at = np.clip(np.searchsorted(source, times, "right") - 1, 0, None)
    since = times - source[at]
    after = np.minimum(at + 1, len(source) - 1)
    lasts, gets = source[after] - source[at], target[after] - target[at]
    is_between = (lasts > 0) & (since >= 0)
    share = gets / np.maximum(lasts, 1)
    inner = np.clip(np.floor(np.clip(since, 0, lasts) * share).astype(np.int64), 0, gets)
    return np.asarray(target[at] + np.where(is_between & (since < lasts), inner, since), np.int64)
