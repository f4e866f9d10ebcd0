"""Where rows stand in the run: at a step, behind a change, or at a time in between."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from stepscope.app.debug.formed import BEFORE_ALL
from stepscope.app.debug.moments import Moments
from stepscope.app.debug.stops.hits import Numbers

NEVER = np.iinfo(np.int64).max


class Places:
    """Many places of a rank at once, as time and place in the order of changes."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments
        self._latest_ns = np.maximum.accumulate(moments.step_ns)
        self._steps = np.asarray(moments.steps, np.int64)
        self._in_order = np.argsort(self._steps, kind="stable")

    def of_steps(self, steps: Numbers) -> tuple[Numbers, Numbers]:
        """The positions of steps that the rank has."""
        seq, ts_ns = self._of_all_steps
        place = self._in_order[np.searchsorted(self._steps[self._in_order], steps)]
        return ts_ns[place], seq[place]

    @cached_property
    def _of_all_steps(self) -> tuple[Numbers, Numbers]:
        ts_ns, seq = self.of_changes(self._moments.step_seq)
        return seq, ts_ns

    def of_changes(self, seqs: Numbers) -> tuple[Numbers, Numbers]:
        """The positions behind changes; the time of a later change is never earlier."""
        if not len(seqs) or not self._moments.changes.ends():
            return np.zeros(len(seqs), np.int64), seqs
        reached = self._moments.order.times_of(seqs)
        if not len(self._latest_ns):
            return reached, seqs
        place = np.searchsorted(self._moments.step_seq, seqs, "right") - 1
        latest = np.where(place >= 0, self._latest_ns[place], reached)
        return np.maximum(reached, latest), seqs

    def of_times(self, ts_ns: Numbers) -> tuple[Numbers, Numbers]:
        """The positions at times: behind all that was told by then, and before the next step."""
        if not len(ts_ns):
            return ts_ns, ts_ns
        seqs = self._moments.order.all_last_by(ts_ns)
        place = np.searchsorted(self._latest_ns, ts_ns, "right")
        bounds = np.concatenate([[BEFORE_ALL], self._moments.step_seq, [NEVER]])
        return ts_ns, np.maximum(np.minimum(seqs, bounds[place + 1] - 1), bounds[place])
