"""The latest rows of a recording, whole, and counts of what is older: memory that does not grow.

Rows are let go by their time, of all tables at once, so that what is kept is all that there was
since then. Of steps that were let go the rows of `steps` stay for longer, to be drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl

from stepscope.ingest.frames import empty
from stepscope.ingest.live.growing_trace import Recorded
from stepscope.ingest.schema import BY_NAME

MOST_ROWS = 150_000
"""Rows of all tables that are kept whole."""
MOST_STEPS = 20_000
"""Rows of `steps` that are kept of what was let go."""
SLACK = 1.2
"""So many times more are let in before rows are let go, as that reads all of them."""
MOST_PARTS = 16
"""Frames of a table that are put together into one when there are more."""


class RecentRows:
    """Takes what was recorded, and gives the latest of it.

    `num_rows` counts by table all that was told of, `num_kept` what is here, `num_left_out` what
    was let go or never read. All rows since `whole_since_ns` are here; None where none is missing.
    `first_ns` is when the first row was that was ever read, `last_ns` the last.
    """

    def __init__(self, most_rows: int = MOST_ROWS, most_steps: int = MOST_STEPS) -> None:
        self.whole_since_ns: int | None = None
        self.first_ns: int | None = None
        self.last_ns: int | None = None
        self.num_left_out: Counter[str] = Counter()
        self._most_rows, self._most_steps = most_rows, most_steps
        self._parts: dict[str, list[pl.DataFrame]] = {}
        self._unfinished: Mapping[str, Sequence[pl.DataFrame]] = {}
        self._older_steps = empty(BY_NAME["steps"]).collect()

    @property
    def num_kept(self) -> Counter[str]:
        """Rows that are here, by table, unfinished ones too."""
        kept = Counter({name: _height(parts) for name, parts in self._parts.items()})
        kept.update({name: _height(parts) for name, parts in self._unfinished.items()})
        return kept

    @property
    def num_rows(self) -> Counter[str]:
        """All rows that were told of, by table."""
        return self.num_kept + self.num_left_out

    def add(self, recorded: Recorded) -> None:
        """Take what is new, and let go of what is too much."""
        for name, frames in recorded.rows.items():
            parts = self._parts.setdefault(name, [])
            parts.extend(frames)
            if len(parts) > MOST_PARTS:
                parts[:] = [pl.concat(parts, rechunk=True)]
        self._unfinished = recorded.unfinished
        self.num_left_out.update(recorded.skipped)
        self._see_times([*recorded.rows.values(), *recorded.unfinished.values()])
        if recorded.whole_since_ns is not None:
            self._let_go(recorded.whole_since_ns)
        if self.num_kept.total() > SLACK * self._most_rows:
            self._let_go(self._cut_ns())

    def frames(self) -> dict[str, pl.LazyFrame]:
        """The rows that are kept whole, by table."""
        found = {}
        for name in {**self._parts, **self._unfinished}:
            parts = [*self._parts.get(name, ()), *self._unfinished.get(name, ())]
            if parts:
                found[name] = pl.concat(parts).lazy()
        return found

    def drawn(self) -> dict[str, pl.LazyFrame]:
        """The same, and the steps before them."""
        frames = self.frames()
        if self._older_steps.height:
            steps = [self._older_steps.lazy(), *([frames["steps"]] if "steps" in frames else [])]
            frames["steps"] = pl.concat(steps)
        return frames

    @property
    def num_older_steps(self) -> int:
        """Rows of `steps` that are kept of what was let go."""
        return self._older_steps.height

    def _see_times(self, came: Iterable[Sequence[pl.DataFrame]]) -> None:
        for frame in (each for frames in came for each in frames):
            times = frame["ts_ns"]
            first, last = times.min(), times.max()
            if isinstance(first, int) and isinstance(last, int):
                self.first_ns = first if self.first_ns is None else min(first, self.first_ns)
                self.last_ns = last if self.last_ns is None else max(last, self.last_ns)

    def _cut_ns(self) -> int:
        """From when as many rows are left as may be: where a step begins, if one does there."""
        times = [
            part["ts_ns"].drop_nulls().to_numpy()
            for parts in self._parts.values()
            for part in parts
        ]
        known = np.concatenate(times)
        place = max(len(known) - self._most_rows, 0)
        at_ns = int(np.partition(known, place)[place])
        steps = [
            part.filter(pl.col("ts_ns") >= at_ns)["ts_ns"].min()
            for part in self._parts.get("steps", ())
        ]
        return min((ts_ns for ts_ns in steps if isinstance(ts_ns, int)), default=at_ns)

    def _let_go(self, since_ns: int) -> None:
        """Keep the rows since a time; those without one that came before the last that goes."""
        since_ns = max(since_ns, self.whole_since_ns or since_ns)
        for name, parts in self._parts.items():
            kept = []
            for part in parts:
                is_kept = part["ts_ns"] >= since_ns
                if name == "steps":
                    self._keep_older(part.filter(~is_kept))
                left = part.filter(is_kept)
                self.num_left_out[name] += part.height - left.height
                kept += [left] if left.height else []
            self._parts[name] = [pl.concat(kept, rechunk=True)] if kept else []
        self.whole_since_ns = since_ns

    def _keep_older(self, steps: pl.DataFrame) -> None:
        older = pl.concat([self._older_steps, steps])
        self._older_steps = older.tail(self._most_steps)


def _height(parts: Iterable[pl.DataFrame]) -> int:
    return sum(part.height for part in parts)
