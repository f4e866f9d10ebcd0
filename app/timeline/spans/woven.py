"""Blocks of cores, and before each the time for which it held its core: both as spans in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stepscope.app.timeline.spans import compiled
from stepscope.app.timeline.spans.packed import Bytes, Ints

Refs = npt.NDArray[np.uint32]
Woven = dict[str, npt.NDArray[Any]]


def woven(times: tuple[Ints, Ints, Ints], state: Bytes, ref: Refs, held_state: int) -> Woven:
    """Spans of blocks, by `start`, `end`, `state` and `ref`.

    `times` are since when the core was held for a block, when that began and ended. Where it was
    not held before, there is the block alone.
    """
    if compiled.IS_COMPILED:
        return _in_one_pass(times, state, ref, held_state)
    held, begin, until = times
    is_held = held < begin
    columns = {
        "start": (held, begin), "end": (begin, until), "state": (np.uint8(held_state), state),
        "ref": (ref, ref),
    }  # fmt: skip
    return {name: in_turn(both, is_held) for name, both in columns.items()}


def in_turn(both: tuple[Any, Any], is_first: npt.NDArray[np.bool_]) -> Any:
    """Two arrays as one, the items of both in turn, without some of the first."""
    found = np.empty((len(is_first), 2), both[1].dtype)
    found[:, 0], found[:, 1] = both
    return found[np.stack((is_first, np.ones_like(is_first)), axis=1)]


def _in_one_pass(times: tuple[Ints, Ints, Ints], state: Bytes, ref: Refs, held_state: int) -> Woven:
    room = 2 * len(ref)
    found: Woven = {
        "start": np.empty(room, np.int64), "end": np.empty(room, np.int64),
        "state": np.empty(room, np.uint8), "ref": np.empty(room, np.uint32),
    }  # fmt: skip
    num = compiled.passes.weave(*times, state, ref, held_state, *found.values())
    return {name: array[:num] for name, array in found.items()}
