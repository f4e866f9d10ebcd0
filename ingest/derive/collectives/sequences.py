"""What one rank's collectives of a group were, and when two ranks were in the same ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stepscope.ingest.derive.collectives.clocks import Ints
from stepscope.ingest.times import FAR_NS

UNKNOWN = np.iinfo(np.int64).min
"""A time that is not known."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """The collectives of a group as one rank issued them.

    codes       a row each for operation, element type and size: numbers, negative where unknown
    steps       the number of its step in the file, -1 where it is in none
    tags        a number for the step's tag, 0 where there is none; `has_step_numbers`: which is
                of the run, as that of `ProfilerStep#7`
    start_ns, end_ns    when they were entered and left, `UNKNOWN` where that is not known
    is_blocking nobody leaves before all have entered
    is_together and all leave together
    """

    rank: int
    ordinals: Ints
    is_numbered: bool
    has_step_numbers: bool
    codes: Ints
    steps: Ints
    tags: Ints
    start_ns: Ints
    end_ns: Ints
    is_blocking: npt.NDArray[np.bool_]
    is_together: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ordinals)


def said_of(ours: Sequence, theirs: Sequence) -> tuple[Ints, Ints]:
    """One number for what is known of each collective, in all of both sequences."""
    both = np.concatenate([ours.codes, theirs.codes])
    known = both[:, (both >= 0).all(axis=0)]
    _, number = np.unique(known, axis=0, return_inverse=True)
    said = number.reshape(-1).astype(np.int64)
    return said[: len(ours)], said[len(ours) :]


def ends_apart(ours: Sequence, theirs: Sequence, mine: Ints, others: Ints) -> Ints:
    """How much later by its clock the other rank left those that all leave together."""
    a, b = ours.end_ns[mine], theirs.end_ns[others]
    known = (a != UNKNOWN) & (b != UNKNOWN) & ours.is_together[mine] & theirs.is_together[others]
    apart: Ints = b[known] - a[known]
    return apart


def bounds(ours: Sequence, theirs: Sequence, mine: Ints, others: Ints) -> tuple[int, int]:
    """The least and the most that the other's clock can be ahead: nobody leaves before all enter.

    That holds whatever came last; beyond `FAR_NS` where nothing says so.
    """
    known = that_block(ours, theirs, mine, others)
    mine, others = mine[known], others[known]
    least = (theirs.start_ns[others] - ours.end_ns[mine]).max(initial=-2 * FAR_NS)
    most = (theirs.end_ns[others] - ours.start_ns[mine]).min(initial=2 * FAR_NS)
    return int(least), int(most)


def that_block(ours: Sequence, theirs: Sequence, mine: Ints, others: Ints) -> npt.NDArray[np.bool_]:
    """Which of them nobody leaves before all have entered, and are known to have ended in both."""
    has_ended = (ours.end_ns[mine] != UNKNOWN) & (theirs.end_ns[others] != UNKNOWN)
    known: npt.NDArray[np.bool_] = has_ended & ours.is_blocking[mine] & theirs.is_blocking[others]
    return known


def overlap(num_ours: int, num_theirs: int, shift: int) -> tuple[int, int]:
    """The places of theirs that face something."""
    return max(0, -shift), min(num_theirs, num_ours - shift)


def first_true(where: npt.NDArray[np.bool_]) -> int:
    """The first place that is true, the length where none is."""
    return int(where.argmax()) if where.any() else len(where)
