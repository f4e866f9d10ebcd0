"""All places of an order, and the time and step that had been reached at each, by runs.

Places are counted, and many rows share a time: a few arrays say it all, which can lie in files and
be mapped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.ingest.derive.distinct_numbers import order_of
from stepscope.ingest.times import EARLIEST_NS

BLOCK_ROWS = 1 << 13
Places = npt.NDArray[np.int64]
Reached = tuple[int, int, int]
"""A place, and the time and the step that were reached there."""


class Told(NamedTuple):
    """What a table tells of an order, in order: place and time of each row, and step if known."""

    seq: pl.Series
    ts_ns: pl.Series
    step: pl.Series


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
        next_run = np.minimum(following, len(self.time_from) - 1)
        is_last = following == len(self.time_from)
        bounds = np.where(is_last, self.last[-1] + 1, self.time_from[next_run])
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
    """The runs of what several tables tell, each in order.

    A block of places after another: what is needed of one on the way fits into the cache of a
    core, and to have the memory for that of all rows at once takes longer than to sort them.
    """
    told = [part for part in parts if len(part.seq)]
    found = [_Begun.nothing()]
    before = None
    for block in _blocks(told):
        begun, before = _begun(*block, before)
        found.append(begun)
    gaps, lasts, *runs = (np.concatenate(each) for each in zip(*found, strict=True))
    return OrderRuns(
        gaps, np.append(lasts, np.array(before[:1] if before else (), np.int64)), *runs
    )


class _Begun(NamedTuple):
    """What begins in a block: runs of places, behind which others end, of times and of steps."""

    first: Places
    last_before: Places
    time_from: Places
    ts_ns: Places
    step_from: Places
    step: Places

    @classmethod
    def nothing(cls) -> _Begun:
        """None of them."""
        return cls(*(np.empty(0, np.int64) for _ in cls._fields))


class _Column:
    """The numbers of a column as they lie in memory, in several pieces; null is EARLIEST_NS."""

    def __init__(self, column: pl.Series) -> None:
        self._pieces = [piece.to_numpy() for piece in column.fill_null(EARLIEST_NS).get_chunks()]
        self._starts = [0, *accumulate(map(len, self._pieces))]

    def between(self, begin: int, end: int) -> list[Places]:
        """Those of some rows, of which there is one."""
        first = bisect_right(self._starts, begin) - 1
        last = bisect_left(self._starts, end, first)
        starts = self._starts[first:last]
        return [
            piece[max(begin - start, 0) : end - start]
            for piece, start in zip(self._pieces[first:last], starts, strict=True)
        ]


def _blocks(told: Sequence[Told]) -> Iterator[tuple[Places, Places, Places]]:
    """Places, times and steps of all that comes next in the order, until nothing does."""
    starts = [part.seq.gather_every(BLOCK_ROWS) for part in told]
    bounds = pl.concat(starts).unique().sort() if told else pl.Series("seq", (), pl.Int64)
    ends = [[*part.seq.search_sorted(bounds[1:], "left"), len(part.seq)] for part in told]
    columns = [[_Column(column) for column in part] for part in told]
    begins = [0] * len(told)
    for until in zip(*ends, strict=True):
        rows = [each for each in zip(columns, begins, until, strict=True) if each[1] < each[2]]
        seq, ts_ns, step = (
            np.concatenate([piece for part, *ends in rows for piece in part[at].between(*ends)])
            for at in range(len(Told._fields))
        )
        yield seq, ts_ns, step
        begins = list(until)


def _begun(
    seq: Places, ts_ns: Places, step: Places, before: Reached | None
) -> tuple[_Begun, Reached]:
    """What begins among some rows, and what was reached by their last place."""
    order = order_of(seq)
    seq, ts_ns, step = seq[order], ts_ns[order], step[order]
    for values, reached in zip((ts_ns, step), before[1:] if before else (), strict=False):
        values[0] = max(values[0], reached)
    for values in (ts_ns, step):
        np.maximum.accumulate(values, out=values)
    is_last = np.append(seq[1:] != seq[:-1], True)
    if not is_last.all():
        seq, ts_ns, step = seq[is_last], ts_ns[is_last], step[is_last]
    last, last_ns, last_step = before or (None, None, None)
    gaps = _others(seq - np.arange(len(seq)), None if last is None else last + 1)
    times, steps = _others(ts_ns, last_ns), _others(step, last_step)
    ended = seq[gaps[gaps > 0] - 1]
    if last is not None and len(gaps) and not gaps[0]:
        ended = np.append(last, ended)
    begun = _Begun(seq[gaps], ended, seq[times], ts_ns[times], seq[steps], step[steps])
    return begun, (int(seq[-1]), int(ts_ns[-1]), int(step[-1]))


def _others(values: Places, before: int | None) -> Places:
    """Where a value is another than the one before it."""
    others = np.flatnonzero(values[1:] != values[:-1]) + 1
    return others if values[0] == before else np.append(0, others)
