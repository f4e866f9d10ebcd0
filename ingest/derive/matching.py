"""Which collectives of two ranks are one, told by their numbers, what they are, and when they end.

Profiles are cut out of a run wherever somebody began to record, so that the n-th collective of one
rank need not be the n-th of another. What is not told beyond doubt is not matched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.ingest.derive.clocks import AGREE_NS, UNBOUNDED, Ints

UNKNOWN = np.iinfo(np.int64).min
"""A time that is not known."""
LEAST_COMMON = 3
LEAST_RUN = 8
"""So many have to be alike, or to end together, to tell one pairing from others."""
MOST_LOOKED_AT = 4_096
TOLERANCE_NS = 1_000
LARGEST_SPREAD_NS = 1_000_000
MOST_DRIFT = 2e-4
"""How much of the time clocks may drift apart: both by a hundred in a million."""
_CLEARLY = 10
_LEAST_APART_NS = 20_000
BY_NUMBER = "sequence numbers"
BY_ORDER = "steps, operations and sizes"
BY_TIME = "operations, and the times between their ends"
BY_CLOCK = "operations, on clocks that seem to agree"


@dataclass(frozen=True, slots=True)
class Sequence:
    """The collectives of a group as one rank issued them.

    codes       a row each for operation, element type and size: numbers, negative where unknown
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
    tags: Ints
    start_ns: Ints
    end_ns: Ints
    is_blocking: npt.NDArray[np.bool_]
    is_together: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ordinals)


@dataclass(frozen=True, slots=True)
class Match:
    """The places in two sequences that face each other, in order, as far as that is beyond doubt.

    `how` says what tells so, or why nothing does. Of the other's places those from `since` up to
    `until` are known, of which the last `differs` if ranks part there.
    """

    how: str
    ours: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    theirs: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    is_known: bool = False
    shift: int = 0
    since: int = 0
    until: int = 0
    differs: bool = False


def match(ours: Sequence, theirs: Sequence) -> Match:
    """Find what faces what: by the group's own numbers, else by the one order that fits."""
    if ours.is_numbered and theirs.is_numbered:
        _, mine, others = np.intersect1d(ours.ordinals, theirs.ordinals, return_indices=True)
        return _until_differs(ours, theirs, mine, others, BY_NUMBER)
    if ours.is_numbered or theirs.is_numbered:
        return Match("only one of them has sequence numbers")
    found = _shift(ours, theirs)
    if isinstance(found, str):
        return Match(found)
    first, last = _overlap(len(ours), len(theirs), found[0])
    others = np.arange(first, last)
    return _until_differs(ours, theirs, others + found[0], others, found[1], found[0])


def _until_differs(
    ours: Sequence, theirs: Sequence, mine: Ints, others: Ints, how: str, shift: int = 0
) -> Match:
    """Keep what comes before ranks part, and of that what they were in at one moment."""
    mine_said, others_said = _said(ours, theirs)
    same = _first(mine_said[mine] != others_said[others])
    first, last = _longest(_meet(ours, theirs, mine[:same], others[:same]))
    if (same and 2 * (last - first) < same) or _drifts(ours, theirs, mine, others, first, last):
        return Match("their times are not those of one difference between clocks")
    parts = last == same < len(others)
    since, until = (
        (int(others[0]) + first, int(others[0]) + last + parts) if len(others) else (0, 0)
    )
    return Match(how, mine[first:last], others[first:last], True, shift, since, until, parts)


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


def _shift(ours: Sequence, theirs: Sequence) -> tuple[int, str] | str:
    """How many places the other's are behind ours, and what tells; else why nothing does.

    Ranks that form batches of their own have other tags, which say nothing then.
    """
    num = min(len(ours), len(theirs), MOST_LOOKED_AT)
    if num < LEAST_COMMON:
        return "too few to tell which of them face each other"
    has_numbers = ours.has_step_numbers and theirs.has_step_numbers
    for with_tags in (True,) if has_numbers else (True, False):
        ways = list(_ways(ours, theirs, with_tags=with_tags))
        whole = [way for way in ways if way.run == way.common]
        if len(whole) > 1:
            return _by_time(ours, theirs, [way.shift for way in whole], num)
        if found := whole if _is_enough(whole, ways, num) else _clearly_longest(ways):
            return found[0].shift, BY_ORDER
    return "what one rank did is not what the other did, in whatever order"


def _is_enough(whole: list[_Way], ways: list[_Way], num: int) -> bool:
    """Whether half of the shorter sequence faces something, and more than by another way.

    Few that fit at the edge are less than many that fit up to where ranks part.
    """
    longest = max((way.run for way in ways if way not in whole), default=0)
    return any(way.common >= max(num / 2, LEAST_COMMON, longest + 1) for way in whole)


def _clearly_longest(ways: list[_Way]) -> list[_Way]:
    """The pairing by which ranks do the same twice as long as by any other before they part."""
    *_, best = sorted(ways, key=lambda way: way.run)
    is_clear = all(best.run >= 2 * way.run for way in ways if way is not best)
    return [best] * (is_clear and best.run >= LEAST_RUN)


@dataclass(frozen=True, slots=True)
class _Way:
    """A pairing: `common` places face each other, and the first `run` of these are alike."""

    shift: int
    common: int
    run: int


def _ways(ours: Sequence, theirs: Sequence, *, with_tags: bool) -> Iterator[_Way]:
    """Every pairing in which a quarter of the shorter sequence faces something."""
    mine_said, others_said = (said[:MOST_LOOKED_AT] for said in _said(ours, theirs))
    mine_tags, others_tags = ours.tags[:MOST_LOOKED_AT], theirs.tags[:MOST_LOOKED_AT]
    least = max(1, min(len(mine_said), len(others_said)) // 4)
    for shift in range(least - len(others_said), len(mine_said) - least + 1):
        first, last = _overlap(len(mine_said), len(others_said), shift)
        mine, others = slice(first + shift, last + shift), slice(first, last)
        alike = mine_said[mine] == others_said[others]
        if with_tags:
            a, b = mine_tags[mine], others_tags[others]
            alike &= (a == b) | (a == 0) | (b == 0)
        yield _Way(shift, last - first, _first(~alike))


def _overlap(num_ours: int, num_theirs: int, shift: int) -> tuple[int, int]:
    """The places of theirs that face something."""
    return max(0, -shift), min(num_theirs, num_ours - shift)


def _first(where: npt.NDArray[np.bool_]) -> int:
    """The first place that is true, the length where none is."""
    return int(where.argmax()) if where.any() else len(where)


def _said(ours: Sequence, theirs: Sequence) -> tuple[Ints, Ints]:
    """One number for what is known of each collective, in all of both sequences."""
    both = np.concatenate([ours.codes, theirs.codes])
    known = both[:, (both >= 0).all(axis=0)]
    _, number = np.unique(known, axis=0, return_inverse=True)
    said = number.reshape(-1).astype(np.int64)
    return said[: len(ours)], said[len(ours) :]


@dataclass(frozen=True, slots=True)
class _Apart:
    """How far the ends of a pairing are apart: in the middle, and nine in ten around it.

    `step_ns` is by how much three in four change from one to the next, which one gap in a sequence
    leaves as it is.
    """

    shift: int
    num: int
    middle_ns: int
    spread_ns: int
    step_ns: int
    could_be_one_clock: bool


def _by_time(
    ours: Sequence, theirs: Sequence, shifts: list[int], num: int
) -> tuple[int, str] | str:
    """Of pairings that look alike, the one by which ranks leave together, if only one is."""
    apart = [each for shift in shifts if (each := _apart(ours, theirs, shift))]
    telling = sorted((each for each in apart if each.num >= LEAST_RUN), key=lambda a: a.step_ns)
    if len(telling) > 1:
        best, next_best = telling[:2]
        is_clear = next_best.step_ns >= max(_LEAST_APART_NS, _CLEARLY * best.step_ns)
        if is_clear and best.spread_ns <= LARGEST_SPREAD_NS and 2 * best.num >= num:
            return best.shift, BY_TIME
    agreeing = [each for each in apart if each.could_be_one_clock]
    if len(agreeing) == 1 and 2 * agreeing[0].num >= max(num, 2 * LEAST_COMMON):
        return agreeing[0].shift, BY_CLOCK
    return f"{len(shifts):,} ways to pair them fit alike"


def _apart(ours: Sequence, theirs: Sequence, shift: int) -> _Apart | None:
    first, last = _overlap(len(ours), len(theirs), shift)
    others = np.arange(first, last)
    ends = ends_apart(ours, theirs, others + shift, others)
    if not len(ends):
        return None
    middle = int(np.median(ends))
    spread = int(np.quantile(np.abs(ends - middle), 0.9, method="higher"))
    least, most = bounds(ours, theirs, others + shift, others)
    one_clock = abs(middle) <= AGREE_NS and least <= TOLERANCE_NS and most >= -TOLERANCE_NS
    steps = np.quantile(np.abs(np.diff(ends)), 0.75, method="higher") if len(ends) > 1 else 0
    return _Apart(shift, len(ends), middle, spread, int(steps), one_clock)


def ends_apart(ours: Sequence, theirs: Sequence, mine: Ints, others: Ints) -> Ints:
    """How much later by its clock the other rank left those that all leave together."""
    a, b = ours.end_ns[mine], theirs.end_ns[others]
    known = (a != UNKNOWN) & (b != UNKNOWN) & ours.is_together[mine] & theirs.is_together[others]
    apart: Ints = b[known] - a[known]
    return apart


def bounds(ours: Sequence, theirs: Sequence, mine: Ints, others: Ints) -> tuple[int, int]:
    """The least and the most that the other's clock can be ahead: nobody leaves before all enter.

    That holds whatever came last; beyond `UNBOUNDED` where nothing says so.
    """
    known = _known(ours, theirs, mine, others)
    mine, others = mine[known], others[known]
    least = (theirs.start_ns[others] - ours.end_ns[mine]).max(initial=-2 * UNBOUNDED)
    most = (theirs.end_ns[others] - ours.start_ns[mine]).min(initial=2 * UNBOUNDED)
    return int(least), int(most)


def _known(ours: Sequence, theirs: Sequence, mine: Ints, others: Ints) -> npt.NDArray[np.bool_]:
    has_ended = (ours.end_ns[mine] != UNKNOWN) & (theirs.end_ns[others] != UNKNOWN)
    known: npt.NDArray[np.bool_] = has_ended & ours.is_blocking[mine] & theirs.is_blocking[others]
    return known


def _meet(ours: Sequence, theirs: Sequence, mine: Ints, others: Ints) -> npt.NDArray[np.bool_]:
    """Whether both ranks were in each at one moment, by clocks as far apart as just before.

    Where one lacks an operation, its later ones are as far off as one is from the next.
    """
    meet = np.ones(len(mine), np.bool_)
    known = _known(ours, theirs, mine, others)
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
