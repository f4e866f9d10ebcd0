"""Which collectives of two ranks are one, told by their numbers, what they are, and when they end.

Profiles are cut out of a run wherever somebody began to record, so that the n-th collective of one
rank need not be the n-th of another. What is not told beyond doubt is not matched.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.ingest.derive.collectives.clocks import Ints
from stepscope.ingest.derive.collectives.pairings import TOLERANCE_NS, Pairing, find_pairing
from stepscope.ingest.derive.collectives.sequences import (
    Sequence,
    bounds,
    first_true,
    overlap,
    said_of,
    that_block,
)

MOST_DRIFT = 2e-4
"""How much of the time clocks may drift apart: both by a hundred in a million."""
BY_NUMBER = "sequence numbers"


@dataclass(frozen=True, slots=True)
class Match:
    """The places in two sequences that face each other, in order, as far as that is beyond doubt.

    `how` says what tells so, or why nothing does. Of the other's places those from `since` up to
    `until` are known, of which the last `differs` if ranks diverge there.
    """

    how: str
    ours: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    theirs: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    is_known: bool = False
    shift: int = 0
    since: int = 0
    until: int = 0
    differs: bool = False
    unless_apart_ns: int | None = None


def match(ours: Sequence, theirs: Sequence) -> Match:
    """Find what faces what: by the group's own numbers, else by the one order that fits."""
    if ours.is_numbered and theirs.is_numbered:
        _, mine, others = np.intersect1d(ours.ordinals, theirs.ordinals, return_indices=True)
        return _until_differs(ours, theirs, mine, others, BY_NUMBER)
    if ours.is_numbered or theirs.is_numbered:
        return Match("only one of them has sequence numbers")
    found = find_pairing(ours, theirs)
    if isinstance(found, str):
        return Match(found)
    first, last = overlap(len(ours), len(theirs), found.shift)
    others = np.arange(first, _until(ours, theirs, found, first, last))
    known = _until_differs(ours, theirs, others + found.shift, others, found.how, found.shift)
    return replace(known, unless_apart_ns=found.unless_apart_ns)


def _until(ours: Sequence, theirs: Sequence, found: Pairing, first: int, last: int) -> int:
    """Behind which of their places nothing is known: the first that differs is, if steps do not."""
    if found.first_difference is None:
        return last
    mine_said, others_said = said_of(ours, theirs)
    at = first + found.first_difference
    return at + bool(mine_said[at + found.shift] != others_said[at])


def _until_differs(
    ours: Sequence, theirs: Sequence, mine: Ints, others: Ints, how: str, shift: int = 0
) -> Match:
    """Keep what comes before ranks diverge, and of that what they were in at one moment."""
    mine_said, others_said = said_of(ours, theirs)
    same = first_true(mine_said[mine] != others_said[others])
    first, last = _longest(_meet(ours, theirs, mine[:same], others[:same]))
    if (same and 2 * (last - first) < same) or _drifts(ours, theirs, mine, others, first, last):
        return Match("their times are not those of one difference between clocks")
    diverges = last == same < len(others)
    since, until = (
        (int(others[0]) + first, int(others[0]) + last + diverges) if len(others) else (0, 0)
    )
    return Match(how, mine[first:last], others[first:last], True, shift, since, until, diverges)


def _drifts(
    ours: Sequence, theirs: Sequence, mine: Ints, others: Ints, first: int, last: int
) -> bool:
    """Whether clocks would have to drift apart more than any do, for these to be one."""
    if last - first < 2:
        return False
    least, most = bounds(ours, theirs, mine[first:last], others[first:last])
    lasted = int(ours.start_ns[mine[last - 1]] - ours.start_ns[mine[first]])
    return least - most > TOLERANCE_NS + abs(lasted) * MOST_DRIFT


def _longest(meet: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """From where to where no place is false, at most."""
    borders = np.concatenate([[0], np.flatnonzero(~meet), [len(meet)]])
    widest = int(np.diff(borders).argmax())
    return int(borders[widest]), int(borders[widest + 1])


def _meet(ours: Sequence, theirs: Sequence, mine: Ints, others: Ints) -> npt.NDArray[np.bool_]:
    """Whether both ranks were in each at one moment, by clocks as far apart as just before.

    Where one lacks an operation, its later ones are as far off as one is from the next.
    """
    meet = np.ones(len(mine), np.bool_)
    known = that_block(ours, theirs, mine, others)
    known &= ours.is_together[mine]
    mine, others = mine[known], others[known]
    apart = theirs.end_ns[others] - ours.end_ns[mine]
    before = (
        pl.Series(apart).rolling_median(15, min_samples=1).shift(1).fill_null(strategy="backward")
    )
    clock = before.fill_null(0).to_numpy().astype(np.int64)
    late = theirs.start_ns[others] - clock - ours.end_ns[mine]
    early = ours.start_ns[mine] + clock - theirs.end_ns[others]
    noise = np.abs(np.diff(apart))
    slack = TOLERANCE_NS + 4 * (int(np.median(noise)) if len(noise) else 0)
    meet[known] = (late <= slack) & (early <= slack)
    return meet
