"""How to pair the collectives of two ranks, if one pairing of all is beyond doubt.

Without numbers every pairing is a guess: where something is lacking in one of the files, the right
one fits badly and a wrong one may fit well. So what fits is compared with all that does not, too.
And a step fits beside any other that does the same as evenly as beside itself: only windows that
hold several steps show whether steps differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from stepscope.ingest.derive.collectives.clocks import AGREE_NS, Ints
from stepscope.ingest.derive.collectives.sequences import (
    Sequence,
    bounds,
    ends_apart,
    first_true,
    overlap,
    said_of,
)

LEAST_COMMON = 3
LEAST_RUN = 8
"""So many have to be alike, or to end together, to tell one pairing from others."""
MOST_LOOKED_AT = 4_096
TOLERANCE_NS = 1_000
LARGEST_SPREAD_NS = 1_000_000
_CLEARLY = 10
_LEAST_APART_NS = 20_000
_CLEARLY_LONGER = 4
_STEPS_TO_COMPARE = 4
"""Of a run that repeats itself after so many steps windows have to show that it does."""
BY_ORDER = "steps, operations and sizes"
BY_TIME = "operations, and the times between their ends"
BY_CLOCK = "operations, on clocks that seem to agree"


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One pairing of all: `common` places face each other, and the first `run` of these are alike.

    `num_tagged` of that run are known to be in a step, and that to have the same tag.
    `longest_run` is how many in a row are, wherever: two ranks do the same before and behind what
    one of them lacks.
    """

    shift: int
    common: int
    run: int
    longest_run: int
    num_tagged: int

    @property
    def first_difference(self) -> int | None:
        """How many are alike before one is not; None where all are."""
        return self.run if self.run < self.common else None


@dataclass(frozen=True, slots=True)
class Pairing:
    """The one that is beyond doubt: how many places the other's are behind ours, and what tells.

    `first_difference`: so many are alike before steps or what they do differ, None where none do.
    `unless_apart_ns`: where clocks tell, so far apart they are at least if another is right.
    """

    shift: int
    how: str
    first_difference: int | None = None
    unless_apart_ns: int | None = None


def find_pairing(ours: Sequence, theirs: Sequence) -> Pairing | str:
    """The pairing that is beyond doubt, else why none is.

    Ranks that form batches of their own have other tags, which say nothing then.
    """
    num = min(len(ours), len(theirs), MOST_LOOKED_AT)
    if num < LEAST_COMMON:
        return "too few to tell which of them face each other"
    has_numbers = ours.has_step_numbers and theirs.has_step_numbers
    for with_tags in (True,) if has_numbers else (True, False):
        pairings = list(_candidates(ours, theirs, with_tags=with_tags))
        fit = _that_fit(pairings, num)
        numbered = [each for each in fit if has_numbers and each.num_tagged]
        known = numbered or [each for each in fit if _holds_steps(ours, theirs, each)]
        if len(fit) == 1 and known and (numbered or _is_alone(fit[0], pairings)):
            return _by_order(ours, theirs, fit[0], pairings)
        if fit:
            by_time = _by_time(ours, theirs, known, pairings)
            return by_time or _by_clock(ours, theirs, fit, pairings) or _why_not(fit, known)
    return "what one rank did is not what the other did, in whatever order"


def _candidates(ours: Sequence, theirs: Sequence, *, with_tags: bool) -> Iterator[_Candidate]:
    """Every pairing in which a quarter of the shorter sequence faces something."""
    mine_said, others_said = (said[:MOST_LOOKED_AT] for said in said_of(ours, theirs))
    mine_tags, others_tags = _tags(ours), _tags(theirs)
    least = max(1, min(len(mine_said), len(others_said)) // 4)
    for shift in range(least - len(others_said), len(mine_said) - least + 1):
        first, last = overlap(len(mine_said), len(others_said), shift)
        mine, others = slice(first + shift, last + shift), slice(first, last)
        alike = mine_said[mine] == others_said[others]
        a, b = mine_tags[mine], others_tags[others]
        if with_tags:
            alike &= (a == b) | (a == 0) | (b == 0)
        run = first_true(~alike)
        num_tagged = int(((a == b) & (a > 0))[:run].sum()) * with_tags
        yield _Candidate(shift, last - first, run, _most_in_a_row(alike), num_tagged)


def _tags(sequence: Sequence) -> Ints:
    """A number for each one's tag, -1 between steps; 0 where the file may not have the step."""
    tags = sequence.tags[:MOST_LOOKED_AT].copy()
    first, last = first_true(tags > 0), len(tags) - first_true(tags[::-1] > 0)
    within = tags[first:last]
    within[within == 0] = -1
    return tags


def _most_in_a_row(where: npt.NDArray[np.bool_]) -> int:
    borders = np.concatenate([[-1], np.flatnonzero(~where), [len(where)]])
    return int(np.diff(borders).max()) - 1


def _that_fit(pairings: list[_Candidate], num: int) -> list[_Candidate]:
    """The pairings by which ranks do the same throughout, or until they diverge."""
    whole = [each for each in pairings if each.run == each.common]
    is_told = len(whole) > 1 or _is_enough(whole, pairings, num)
    return whole if is_told else _clearly_longest(pairings)


def _is_enough(whole: list[_Candidate], pairings: list[_Candidate], num: int) -> bool:
    """Whether half of the shorter sequence faces something, and more than in another.

    Few that fit at the edge are less than many that fit up to where ranks diverge.
    """
    longest = max((each.run for each in pairings if each not in whole), default=0)
    return any(each.common >= max(num / 2, LEAST_COMMON, longest + 1) for each in whole)


def _clearly_longest(pairings: list[_Candidate]) -> list[_Candidate]:
    """The pairing by which ranks do the same twice as long as by any other before they diverge."""
    *_, best = sorted(pairings, key=lambda each: each.run)
    is_clear = all(best.run >= 2 * each.run for each in pairings if each is not best)
    return [best] * (is_clear and best.run >= LEAST_RUN)


def _is_alone(best: _Candidate, pairings: list[_Candidate]) -> bool:
    """Whether in no other more than few in a row are alike, even behind what one lacks."""
    longest = max((each.longest_run for each in pairings if each is not best), default=0)
    return best.run >= max(LEAST_RUN, _CLEARLY_LONGER * longest)


def _holds_steps(ours: Sequence, theirs: Sequence, pairing: _Candidate) -> bool:
    """Whether what is alike outlasts several steps, so that one step is not taken for another.

    What is in no step counts as one, however long it may be.
    """
    first, _ = overlap(len(ours), len(theirs), pairing.shift)
    of_steps = (
        ours.steps[first + pairing.shift : first + pairing.shift + pairing.run],
        theirs.steps[first : first + pairing.run],
    )
    longest = max(int(np.unique(steps, return_counts=True)[1].max()) for steps in of_steps)
    return pairing.run >= LEAST_RUN + _STEPS_TO_COMPARE * longest


@dataclass(frozen=True, slots=True)
class _Apart:
    """How far the ends of a pairing are apart: in the middle, and nine in ten around it.

    `step_ns` is by how much three in four change from one to the next, which one gap in a sequence
    leaves as it is.
    """

    pairing: _Candidate
    num: int
    middle_ns: int
    spread_ns: int
    step_ns: int
    could_be_one_clock: bool


def _by_order(
    ours: Sequence, theirs: Sequence, pairing: _Candidate, pairings: list[_Candidate]
) -> Pairing | str:
    """The pairing that operations and steps tell, unless another's times are clearly more even."""
    apart = _apart(ours, theirs, pairing)
    others = _evenest_ns(ours, theirs, pairings, pairing.shift)
    if apart and others is not None and apart.step_ns >= max(_LEAST_APART_NS, _CLEARLY * others):
        return "one way to pair them fits what they are, and another when they end"
    return Pairing(pairing.shift, BY_ORDER, pairing.first_difference)


def _by_time(
    ours: Sequence, theirs: Sequence, fit: list[_Candidate], pairings: list[_Candidate]
) -> Pairing | None:
    """Of pairings that fit, the one in which ranks leave together, if they do in no other."""
    num = min(len(ours), len(theirs), MOST_LOOKED_AT)
    of_each = [apart for each in fit if (apart := _apart(ours, theirs, each))]
    long_enough = [each for each in of_each if each.num >= max(LEAST_RUN, num / 2)]
    best = min(long_enough, key=lambda each: each.step_ns, default=None)
    if best is None:
        return None
    others = _evenest_ns(ours, theirs, pairings, best.pairing.shift)
    is_clear = (others or 0) >= max(_LEAST_APART_NS, _CLEARLY * best.step_ns)
    is_told = is_clear and best.spread_ns <= LARGEST_SPREAD_NS
    return Pairing(best.pairing.shift, BY_TIME, best.pairing.first_difference) if is_told else None


def _by_clock(
    ours: Sequence, theirs: Sequence, fit: list[_Candidate], pairings: list[_Candidate]
) -> Pairing | None:
    """Of pairings that fit, the only one by which clocks agree.

    It is wrong where clocks are as far apart as in another, which no file tells.
    """
    num = min(len(ours), len(theirs), MOST_LOOKED_AT)
    least = max(LEAST_COMMON if len(fit) == 1 else LEAST_RUN, num / 2)
    of_each = [apart for each in fit if (apart := _apart(ours, theirs, each))]
    agreeing = [each for each in of_each if each.could_be_one_clock]
    if len(agreeing) != 1 or agreeing[0].num < least:
        return None
    others = _evenest_ns(ours, theirs, pairings, agreeing[0].pairing.shift)
    if others is not None and agreeing[0].step_ns > TOLERANCE_NS + 2 * others:
        return None
    pairing = agreeing[0].pairing
    unless_apart_ns = _nearest_ns(ours, theirs, pairings, pairing.shift)
    return Pairing(pairing.shift, BY_CLOCK, pairing.first_difference, unless_apart_ns)


def _nearest_ns(ours: Sequence, theirs: Sequence, pairings: list[_Candidate], without: int) -> int:
    """How far clocks are apart in another at least: one that is alike, or farther than any."""
    farthest = {each.shift for each in (pairings[0], pairings[-1])}
    others = [
        _ends(ours, theirs, each)
        for each in pairings
        if each.shift != without and (each.longest_run >= LEAST_COMMON or each.shift in farthest)
    ]
    return min((abs(int(np.median(ends))) for ends in others if len(ends)), default=0)


def _why_not(fit: list[_Candidate], known: list[_Candidate]) -> str:
    if len(fit) > 1:
        return f"{len(fit):,} ways to pair them fit alike"
    if not known:
        return "one way to pair them fits, but they hold too few steps to tell one from another"
    return "one way to pair them fits, but is not set apart from others by what they are and when"


def _apart(ours: Sequence, theirs: Sequence, pairing: _Candidate) -> _Apart | None:
    first, _ = overlap(len(ours), len(theirs), pairing.shift)
    others = np.arange(first, first + pairing.run)
    ends = ends_apart(ours, theirs, others + pairing.shift, others)
    if not len(ends):
        return None
    middle = int(np.median(ends))
    spread = int(np.quantile(np.abs(ends - middle), 0.9, method="higher"))
    least, most = bounds(ours, theirs, others + pairing.shift, others)
    one_clock = abs(middle) <= AGREE_NS and least <= TOLERANCE_NS and most >= -TOLERANCE_NS
    steps = np.quantile(np.abs(np.diff(ends)), 0.75, method="higher") if len(ends) > 1 else 0
    return _Apart(pairing, len(ends), middle, spread, int(steps), one_clock)


def _evenest_ns(
    ours: Sequence, theirs: Sequence, pairings: list[_Candidate], without: int
) -> int | None:
    """By how much all ends but one change, of the `LEAST_RUN` in a row that change least otherwise.

    A few are enough to doubt: what one of them lacks cuts what they met in into pieces, and leaves
    gaps in what looks even. None where no other than that of `without` has so many ends.
    """
    ends = (_ends(ours, theirs, each) for each in pairings if each.shift != without)
    changes = [np.abs(np.diff(each)) for each in ends]
    enough = [each for each in changes if len(each) >= LEAST_RUN - 1]
    in_a_row = (sliding_window_view(each, LEAST_RUN - 1) for each in enough)
    but_one = (np.partition(each, -2, axis=1)[:, -2] for each in in_a_row)
    return min((int(each.min()) for each in but_one), default=None)


def _ends(ours: Sequence, theirs: Sequence, pairing: _Candidate) -> Ints:
    first, last = overlap(len(ours), len(theirs), pairing.shift)
    others = np.arange(first, min(last, first + MOST_LOOKED_AT))
    return ends_apart(ours, theirs, others + pairing.shift, others)
