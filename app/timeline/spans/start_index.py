"""How many of some sorted times of a lane lie before a time."""

from __future__ import annotations

import numpy as np

from stepscope.app.timeline.spans.packed import Ints
from stepscope.ingest.times import FAR_NS

PER_BIN = 4


class StartIndex:
    """Finds how many times of a lane, `offsets[i]:offsets[i + 1]`, lie before another.

    Bins of equal time say between which two to look, so that the search in each lane is a few
    steps, taken for all pixels at once.
    """

    def __init__(self, times: Ints, offsets: Ints, before: Ints) -> None:
        """Take the times, and what `counted` made of them."""
        self._times, self._offsets = times, offsets
        self._num_bins, self._first, self._bin_ns = before[:3].tolist()
        self._before = before[3:]

    @staticmethod
    def counted(times: Ints, offsets: Ints) -> Ints:
        """The number of bins of a lane, where the first begins, how long each is; and those before.

        The rest are how many times lie before each bin of each lane, from the section's first.
        """
        num_lanes = len(offsets) - 1
        num_bins = len(times) // (PER_BIN * max(num_lanes, 1)) + 1
        first = int(times.min(initial=FAR_NS))
        extent_ns = int(times.max(initial=-FAR_NS)) - first
        bin_ns = max(extent_ns, 0) // num_bins + 1
        place = np.repeat(np.arange(num_lanes) * num_bins, np.diff(offsets))
        place += (times - first) // bin_ns
        counts = np.bincount(place, minlength=num_lanes * num_bins)
        return np.concatenate(([num_bins, first, bin_ns, 0], np.cumsum(counts)))

    def num_before(self, lanes: Ints, times: Ints) -> Ints:
        """How many, from the section's first, lie before each time [lanes, any] in its lane."""
        bins = ((times - self._first) // self._bin_ns).clip(0, self._num_bins - 1)
        place = lanes[:, None] * self._num_bins + bins
        low: Ints = self._before.take(place)
        high = self._before.take(place + 1)
        for bit in reversed(range(int((high - low).max(initial=0)).bit_length())):
            ahead = low + ((1 << bit) - 1)
            is_before = ahead < high
            is_before &= self._times.take(ahead, mode="clip") < times
            low += is_before.astype(np.int64) << bit
        return low
