"""A condition that a front looks for: its hits on all ranks, and how to go to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepscope.analyzers.findings.wording import times
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.stops.hits import Here, Numbers
from stepscope.app.debug.stops.stop import Hit, Stop
from stepscope.app.units import count

COMMANDS = ("break", "b", "watch", "all")
"""Commands of the prompt; a front takes what stands behind them, with them or without."""
_LEAST = np.iinfo(np.int64).min
NO_TIMES = np.zeros(0, np.int64)
FIRST = Here(_LEAST, _LEAST, _LEAST)


@dataclass(frozen=True, slots=True)
class Sought:
    """Where a condition is met: `ts_ns` is when, sorted, on whatever rank, for marks on a map."""

    stop: Stop
    ts_ns: Numbers
    num_ranks: int

    @property
    def wanted(self) -> str:
        """The condition as it was written, without a command."""
        return self.stop.wanted

    @property
    def is_nowhere(self) -> bool:
        """Whether no row of any rank is known to meet the condition."""
        return not len(self.stop)

    def told(self, here: Here) -> str:
        """How many hits there are, and whether a place is one of them: `hit 2 of 29`."""
        just_before = here._replace(order=here.order - 1)
        is_hit = any(hits.between(just_before, here) for hits in self.stop.sources)
        passed = sum(len(hits.between(FIRST, here)) for hits in self.stop.sources)
        num = len(self.stop)
        said = f"hit {count(passed)} of {count(num)}" if is_hit else _hits(num)
        return said + (f" on {count(self.num_ranks)} ranks" if self.num_ranks > 1 else "")

    def next(self, here: Here, by: int) -> Hit | None:
        """The hit after a place (1) or the one before (-1); None where there is none."""
        return self.stop.after(here) if by > 0 else self.stop.before(here)

    def at(self, ts_ns: int) -> Hit | None:
        """The first hit at a time or after it; None where there is none."""
        return self.stop.after(FIRST._replace(ts_ns=ts_ns))


def sought(debugger: Debugger, words: str) -> Sought:
    """Find every hit of a condition; raises ConfigError as `break` does."""
    stop = debugger.find(_without_command(words))
    times = np.sort(np.concatenate([hits.ts_ns for hits in stop.sources]))
    ranks = {rank for hits in stop.sources for rank in np.unique(hits.rank).tolist()}
    return Sought(stop, times, len(ranks))


def _without_command(words: str) -> str:
    command, _, rest = words.strip().partition(" ")
    return rest if command in COMMANDS else words


def _hits(num: int) -> str:
    return times(num, "hit") if num else "no hit"
