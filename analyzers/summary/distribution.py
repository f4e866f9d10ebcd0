"""How a quantity is spread: its quantiles, and how many values lie in each of some equal parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.analyzers.latency.blame import spread

MOST_PARTS = 40
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Distribution:
    """Times of something: how many, their quantiles by name, and a histogram.

    `counts[i]` of them lie in [`edges[i]`, `edges[i + 1]`), the largest in the last part; all parts
    are of one length, in ns.
    """

    num: int
    quantiles_ns: dict[str, int]
    edges: Ints
    counts: Ints


def distribution(times_ns: pl.Series) -> Distribution | None:
    """How times are spread; None where there are none. Nulls do not count."""
    known = times_ns.drop_nulls().cast(pl.Int64)
    if known.is_empty():
        return None
    values = known.to_numpy()
    first, last = int(values.min()), int(values.max())
    length = max(-(-(last - first + 1) // MOST_PARTS), 1)
    num_parts = (last - first) // length + 1
    counts = np.bincount((values - first) // length, minlength=num_parts)
    edges = first + length * np.arange(num_parts + 1, dtype=np.int64)
    return Distribution(len(known), spread(known), edges, counts.astype(np.int64))
