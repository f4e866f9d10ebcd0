"""A condition that a front looks for: its hits in the rank shown, and how many are elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.stops.hits import Here, Numbers
from stepscope.app.debug.stops.stop import Stop
from stepscope.app.units import count

COMMANDS = ("break", "b", "watch", "all")
"""Commands of the prompt; a front takes what stands behind them, with them or without."""
_LEAST = np.iinfo(np.int64).min
NOWHERE = "no row of this trace meets it"
NO_TIMES = np.zeros(0, np.int64)
FIRST = Here(_LEAST, _LEAST, _LEAST)


@dataclass(frozen=True, slots=True)
class Sought:
    """Where a condition is met in a rank: `ts_ns` is when, sorted, for the marks on a map.

    `num_elsewhere` counts the hits of other ranks, which a front that shows one rank cannot go to.
    """

    stop: Stop
    ts_ns: Numbers
    num_elsewhere: int

    @property
    def wanted(self) -> str:
        """The condition as it was written, without a command."""
        return self.stop.wanted

    @property
    def is_nowhere(self) -> bool:
        """Whether no row of any rank meets the condition."""
        return not len(self.stop) and not self.num_elsewhere

    def told(self, here: Here) -> str:
        """How many hits there are, and whether a place is one of them: `hit 2 of 29`."""
        just_before = here._replace(order=here.order - 1)
        is_hit = any(hits.between(just_before, here) for hits in self.stop.sources)
        passed = sum(len(hits.between(FIRST, here)) for hits in self.stop.sources)
        num = len(self.stop)
        said = f"hit {count(passed)} of {count(num)}" if is_hit else _hits(num)
        return said + (f", {count(self.num_elsewhere)} elsewhere" if self.num_elsewhere else "")


def sought(debugger: Debugger, words: str) -> Sought:
    """Find every hit of a condition in the debugger's rank; raises ConfigError as `break` does."""
    stop = debugger.find(_without_command(words))
    own = tuple(hits.of_rank(debugger.rank) for hits in stop.sources)
    here = replace(stop, sources=own)
    times = np.sort(np.concatenate([hits.ts_ns for hits in own]))
    return Sought(here, times, len(stop) - len(here))


def go_to_next(debugger: Debugger, found: Sought, by: int) -> bool:
    """Go to the next hit (1) or the one before (-1); False where there is none."""
    stop = found.stop
    hit = stop.after(debugger.here) if by > 0 else stop.before(debugger.here)
    if hit is not None:
        debugger.go_to_hit(stop, hit)
    return hit is not None


def _without_command(words: str) -> str:
    command, _, rest = words.strip().partition(" ")
    return rest if command in COMMANDS else words


def _hits(num: int) -> str:
    return "1 hit" if num == 1 else f"{count(num)} hits" if num else "no hit"
