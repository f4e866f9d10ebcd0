"""All places of an order, and the time and step that had been reached at each, by runs.

Places are counted, and many rows share a time: a few arrays say it all, which can lie in files and
be mapped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stepscope.ingest.derive.distinct_numbers import MOST_GAPS, order_of
from stepscope.ingest.times import EARLIEST_NS

Places = npt.NDArray[np.int64]
Part = Callable[[], Places]
Changes = tuple[Places, Places, Places]
"""Places, and the time and the step that was reached at each."""


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
    seq, ts_ns, step = _reached([_changes(part) for part in told])
    return OrderRuns(
        *_without_gaps([part.seq for part in told]), *_runs(seq, ts_ns), *_runs(seq, step)
    )


def _without_gaps(seqs: Sequence[Places]) -> tuple[Places, Places]:
    """The first and the last of each run of places."""
    base, last = min(int(seq[0]) for seq in seqs), max(int(seq[-1]) for seq in seqs)
    if last - base >= MOST_GAPS * sum(map(len, seqs)):
        known = np.unique(np.concatenate(seqs))
        jumps = np.flatnonzero(np.diff(known) != 1) + 1
        return np.append(known[0], known[jumps]), np.append(known[jumps - 1], known[-1])
    is_told = np.zeros(last - base + 3, bool)
    for seq in seqs:
        is_told[seq - (base - 1)] = True
    turns = np.flatnonzero(is_told[1:] != is_told[:-1])
    return turns[::2] + base, turns[1::2] + base - 1


def _changes(part: Told) -> Changes:
    """The rows of a table at which another time or step was reached than ever before in it."""
    ts_ns, step = np.maximum.accumulate(part.ts_ns()), np.maximum.accumulate(part.step())
    is_other = (ts_ns[1:] != ts_ns[:-1]) | (step[1:] != step[:-1])
    rows = np.append(0, np.flatnonzero(is_other) + 1)
    return part.seq[rows], ts_ns[rows], step[rows]


def _reached(changes: Sequence[Changes]) -> Changes:
    """What was reached at each place at which something was, by all tables together."""
    seq, ts_ns, step = (np.concatenate(told) for told in zip(*changes, strict=True))
    order = order_of(seq)
    seq = seq[order]
    is_last = np.append(seq[1:] != seq[:-1], True)
    most_ns, most = (np.maximum.accumulate(told[order]) for told in (ts_ns, step))
    return seq[is_last], most_ns[is_last], most[is_last]


def _runs(seq: Places, values: Places) -> tuple[Places, Places]:
    """From which place on a value is another, and what it is."""
    begins = np.append(0, np.flatnonzero(values[1:] != values[:-1]) + 1)
    return seq[begins], values[begins]
