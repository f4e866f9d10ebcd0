"""Prices that explain times: non-negative least squares, and which times are too far off for it.

`work` has a row for each time and a column for each price; times and prices are in nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TURNS = 30
FAR = 5.0
"""Deviations, each 1.4826 medians of the absolute residual, as in a normal distribution."""


def is_near(work: Floats, took_ns: Floats) -> NDArray[np.bool_]:
    """Which steps lie near the prices that least absolute deviations give."""
    weights = np.ones_like(took_ns)
    floor_ns = max(1.0, 1e-6 * float(np.median(took_ns)))
    residuals = took_ns
    for _ in range(TURNS):
        scale = np.sqrt(weights)
        prices = least_squares(work * scale[:, None], took_ns * scale)
        residuals = np.abs(took_ns - work @ prices)
        weights = 1 / np.maximum(residuals, floor_ns)
    deviation = 1.4826 * float(np.median(residuals))
    return residuals <= max(FAR * deviation, floor_ns)


def least_squares(work: Floats, took_ns: Floats) -> Floats:
    """Non-negative least squares, by trying which prices are above nothing: there are few.

    Of two choices that explain the steps as well, the one with fewer prices is taken.
    """
    scale = np.sqrt((work**2).sum(axis=0))
    used = [column for column in range(work.shape[1]) if scale[column] > 0]
    rows = np.column_stack([work[:, used] / scale[used], took_ns])
    corner = np.asarray(np.linalg.qr(rows, mode="r"))
    best, prices = np.inf, np.zeros(work.shape[1])
    for num_prices in range(1, len(used) + 1):
        for chosen in map(list, combinations(range(len(used)), num_prices)):
            found = np.linalg.lstsq(corner[:, chosen], corner[:, -1], rcond=None)[0]
            error = float(np.linalg.norm(corner[:, -1] - corner[:, chosen] @ found))
            if found.min() >= 0 and error < best * (1 - 1e-9):
                best, prices = error, _spread(found, [used[i] for i in chosen], scale)
    return prices


def _spread(found: Floats, columns: Sequence[int], scale: Floats) -> Floats:
    prices = np.zeros(len(scale))
    prices[columns] = found / scale[columns]
    return prices


def r_squared(took_ns: Floats, residuals: Floats) -> float:
    """How much of the scatter of times is explained: 1 where nothing is left of it."""
    around_mean = float(((took_ns - took_ns.mean()) ** 2).sum())
    return 1 - float((residuals**2).sum()) / around_mean if around_mean else 1.0
