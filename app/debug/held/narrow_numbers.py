"""Numbers of rows in as few bytes as they need, and what is asked of them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

NEVER = 1 << 62
Numbers = npt.NDArray[np.signedinteger[Any]]
Narrow = type[np.int8 | np.int16 | np.int32 | np.int64]


def narrow(values: Numbers, *, is_end: bool = False) -> Numbers:
    """The same numbers in the fewest bytes; of ends, NEVER is the largest that these can hold."""
    if not len(values):
        return values
    known = np.where(values == NEVER, values.dtype.type(0), values) if is_end else values
    dtype = narrowest(int(known.min()), int(known.max()))
    if dtype is np.int64:
        return values
    narrowed: Numbers = known.astype(dtype, copy=False)
    if is_end:
        narrowed[values == NEVER] = np.iinfo(dtype).max
    return narrowed


def narrowest(low: int, high: int) -> Narrow:
    """The type of the fewest bytes for numbers from `low` to `high`, and one more."""
    for dtype in (np.int8, np.int16, np.int32):
        bounds = np.iinfo(dtype)
        if bounds.min <= low and high < bounds.max:
            return dtype
    return np.int64


def within(ends: Numbers, place: int) -> int:
    """A place that is behind the same ends, and before NEVER as these numbers hold it."""
    return min(place, int(np.iinfo(ends.dtype).max) - 1)


def searched(values: Numbers, value: int, side: Literal["left", "right"] = "left") -> int:
    """Where a number comes among sorted ones, which may be narrower than it is."""
    bounds = np.iinfo(values.dtype)
    if not bounds.min <= value <= bounds.max:
        return len(values) if value > bounds.max else 0
    return int(np.searchsorted(values, values.dtype.type(value), side))
