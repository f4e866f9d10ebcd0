"""The ruler of B under that of A: round times by B's own clock, where they lie on the time of A."""

from __future__ import annotations

from typing import NamedTuple

from stepscope.app.paired.joined_timeline import JoinedTimeline
from stepscope.app.units import tick_step


class Ruler(NamedTuple):
    """Times that are `step` ns apart; `last` is the end of what B has in the window."""

    step: int
    last: int
    own: list[int]
    """Since B's begin."""
    on_a: list[int]
    """Where each of them lies on the time of A: several may lie at one."""


def ruler_of_b(timeline: JoinedTimeline, t0: int, t1: int, most: int) -> Ruler:
    """The times of B in a window of A's time, at most so many."""
    begin = timeline.both[1].bounds[0]
    first, last = (each - begin for each in timeline.own_window(1, t0, t1))
    step = tick_step(last - first, most)
    own = [*range(-(-first // step) * step, last, step)]
    return Ruler(step, last, own, [timeline.on_a(1, each + begin) for each in own])
