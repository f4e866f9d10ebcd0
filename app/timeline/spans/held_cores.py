"""Since when a core was held, of arrays: for who lays out one core after the other.

`states.with_held` says the same of a frame. NumPy takes a tenth of a second to import, which those
who ask for states alone do not wait for.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stepscope.ingest.times import FAR_NS

Ints = npt.NDArray[np.int64]


def held_since(ts_ns: Ints, dispatch_ns: Ints, end_ns: Ints) -> Ints:
    """The `held_ns` of `with_held`, of the blocks of one core in order of their starts.

    A block whose dispatch is not known has its start there, one without an end has `FAR_NS`.
    """
    held: Ints = np.minimum(dispatch_ns, ts_ns)
    np.minimum.accumulate(held[::-1], out=held[::-1])
    free = np.maximum.accumulate(end_ns)
    np.clip(free, -FAR_NS, FAR_NS, out=free)
    np.maximum(held[1:], free[:-1], out=held[1:])
    np.maximum(held[:1], -FAR_NS, out=held[:1])
    return np.minimum(held, ts_ns, out=held)
