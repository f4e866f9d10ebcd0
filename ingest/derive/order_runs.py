"""All places of an order, and the time and step that had been reached at each, by runs.

Places are counted, and many rows share a time: a few arrays say it all, which can lie in files and
be mapped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stepscope.ingest.derive.distinct_numbers import MOST_GAPS
from stepscope.ingest.times import EARLIEST_NS

Places = npt.NDArray[np.int64]
Part = Callable[[], Places]


class Told(NamedTuple):
    """What a table tells of an order, in order: places, and what is asked for when it is needed."""

    seq: Places
    ts_ns: Part
    step: Part


class OrderRuns(NamedTuple):
    """Runs of places without a gap, of one time, and of one step; each array is sorted.

    A time or step is that of its run's first place and of all before the next run's. Some rows are
    told later than they happened: what was reached never goes back. `EARLIEST_NS` stands where no
    step was told yet.
    """

    first: Places
    last: Places
    time_from: Places
    ts_ns: Places
    step_from: Places
    step: Places

    @property
    def num_places(self) -> int:
        """How many places there are."""
        return int((self.last - self.first).sum()) + len(self.first)

    def every(self) -> Places:
        """All places, in order; what is asked of many is asked of the runs."""
        runs = [np.arange(*run) for run in zip(self.first, self.last + 1, strict=True)]
        return np.concatenate(runs) if runs else np.empty(0, np.int64)

    def ends(self) -> tuple[int, int] | None:
        """The first and the last place; None where there is none."""
        return (int(self.first[0]), int(self.last[-1])) if len(self.first) else None

    def after(self, seq: int) -> int | None:
        """The next place behind one; None at the end."""
        run = int(np.searchsorted(self.last, seq, "right"))
        return max(int(self.first[run]), seq + 1) if run < len(self.first) else None

    def before(self, seq: int) -> int | None:
        """The last place in front of one; None at the start."""
        run = int(np.searchsorted(self.first, seq)) - 1
        return min(int(self.last[run]), seq - 1) if run >= 0 else None

    def all_last_by(self, ts_ns: npt.ArrayLike, otherwise: int) -> Places:
        """The last place that was reached by each time; `otherwise` before the first."""
        following = np.searchsorted(self.ts_ns, ts_ns, "right")
        if not len(self.first):
            return np.full(np.shape(ts_ns), otherwise)
        bounds = np.append(self.time_from, self.last[-1] + 1)[following]
        run = np.searchsorted(self.first, bounds) - 1
        return np.where(run >= 0, np.minimum(self.last[run], bounds - 1), otherwise)

    def times_of(self, seqs: npt.ArrayLike) -> Places:
        """The times that had been reached at places; the first of all for what is before."""
        runs = np.searchsorted(self.time_from, seqs, "right") - 1
        times: Places = self.ts_ns[np.maximum(runs, 0)]
        return times

    def step_of(self, seq: int) -> int | None:
        """The last step of which something had been told at a place; None where it was none."""
        run = int(np.searchsorted(self.step_from, seq, "right")) - 1
        step = int(self.step[run]) if run >= 0 else EARLIEST_NS
        return None if step == EARLIEST_NS else step


def runs_of(parts: Sequence[Told]) -> OrderRuns:
    """The runs of what several tables tell, each in order."""
    told = [part for part in parts if len(part.seq)]
    if not told:
        return OrderRuns(*(np.empty(0, np.int64) for _ in OrderRuns._fields))
    base, last = (min(int(part.seq[0]) for part in told), max(int(part.seq[-1]) for part in told))
    if last - base >= MOST_GAPS * sum(len(part.seq) for part in told):
        known = np.unique(np.concatenate([part.seq for part in told]))
        places = [np.searchsorted(known, part.seq) for part in told]
        jumps = np.flatnonzero(np.diff(known) != 1) + 1
        firsts = np.append(known[0], known[jumps])
        lasts = np.append(known[jumps - 1], known[-1])
        size = len(known)
        return OrderRuns(
            firsts, lasts, *_reached(told, "ts_ns", places, size, known),
            *_reached(told, "step", places, size, known),
        )  # fmt: skip
    size, places = last - base + 1, [part.seq - base for part in told]
    return OrderRuns(
        *_without_gaps(places, size, base), *_reached(told, "ts_ns", places, size, base),
        *_reached(told, "step", places, size, base),
    )  # fmt: skip


def _without_gaps(places: Sequence[Places], size: int, base: int) -> tuple[Places, Places]:
    """The first and the last of each run of places."""
    is_told = np.zeros(size + 2, bool)
    for place in places:
        is_told[place + 1] = True
    turns = np.flatnonzero(is_told[1:] != is_told[:-1])
    return turns[::2] + base, turns[1::2] + base - 1


def _reached(
    told: Sequence[Told], what: str, places: Sequence[Places], size: int, numbers: Places | int
) -> tuple[Places, Places]:
    """From which place on the most that was told so far is another, and what it is."""
    most = np.full(size, EARLIEST_NS)
    for part, place in zip(told, places, strict=True):
        values = getattr(part, what)()
        if (place[1:] > place[:-1]).all():
            most[place] = np.maximum(most[place], values)
        else:
            np.maximum.at(most, place, values)
    np.maximum.accumulate(most, out=most)
    begins = np.append(0, np.flatnonzero(most[1:] != most[:-1]) + 1)
    values = most[begins]
    return (begins + numbers if isinstance(numbers, int) else numbers[begins]), values
