"""How far the clocks of ranks are apart, by the ends of collectives that ranks leave together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from stepscope.ingest.times import FAR_NS

LEAST_COLLECTIVES = 3
LARGEST_RESIDUAL_NS = 1_000_000
"""Ends that are scattered more than this say nothing of the clocks."""
AGREE_NS = 50_000
"""Ranks of one machine leave a collective no further apart: no reason to move a clock."""
Ints = npt.NDArray[np.int64]
_NUMBER = 3


@dataclass(frozen=True, slots=True)
class Apart:
    """How much later, by its clock, rank `rank` left collectives than rank `base` did.

    `ends_ns` are the differences. Whatever came last, the clock is ahead by `least_ns` at least and
    by `most_ns` at most, because nobody leaves before all have entered. `how` says by what the
    collectives were paired; where that was clocks that seem to agree, `unless_apart_ns` is how far
    they are apart at least if they were paired wrongly.
    """

    base: int
    rank: int
    ends_ns: Ints
    least_ns: int
    most_ns: int
    how: str
    unless_apart_ns: int | None = None

    def reversed(self) -> Apart:
        """The same, seen from the other rank."""
        ends_ns, least_ns, most_ns = -self.ends_ns, -self.most_ns, -self.least_ns
        told = (self.how, self.unless_apart_ns)
        return Apart(self.rank, self.base, ends_ns, least_ns, most_ns, *told)


@dataclass(frozen=True, slots=True)
class Offset:
    """How far a rank's clock is ahead of the reference's, by `num` collectives, and how sure it is.

    `offset_ns` is the median of how much later it left them than `base` did, from rank to rank up
    to the reference; nine in ten are within `residual_ns` of it, and it lies between `least_ns` and
    `most_ns` in any case. `how` says by what collectives were paired; `why_not`, if not empty, why
    the clock is not known. Where clocks told, two of them are `unless_apart_ns` apart at least if
    it is wrong.
    """

    rank: int
    num: int = 0
    offset_ns: int = 0
    residual_ns: int = 0
    least_ns: int | None = 0
    most_ns: int | None = 0
    base: int | None = None
    how: str = ""
    why_not: str = ""
    unless_apart_ns: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether the ends say how far the clocks are apart."""
        return not self.why_not

    @property
    def correction_ns(self) -> int:
        """What to add to the rank's times: nothing where the ends don't tell, or agree."""
        near = abs(self.offset_ns) <= max(AGREE_NS, self.residual_ns)
        could_be_one = (self.least_ns or 0) <= AGREE_NS and (self.most_ns or 0) >= -AGREE_NS
        return 0 if not self.is_known or (near and could_be_one) else -self.offset_ns


_Told = tuple[str, int, int, int, Offset]


def clock_offsets(apart: Iterable[Apart], reference: int, ranks: Iterable[int]) -> list[Offset]:
    """The offset of each rank's clock from that of rank `reference`.

    A rank that has no collective with that one is compared with another whose clock is known, the
    surest first. What one rank says of another is reckoned once, however many ranks there are.
    """
    edges = [each for pair in apart for each in (pair, pair.reversed())]
    of_base: dict[int, list[int]] = {}
    for number, each in enumerate(edges):
        of_base.setdefault(each.base, []).append(number)
    known = {reference: Offset(reference)}
    told: list[_Told] = []
    newest = reference
    while True:
        for number in of_base.get(newest, ()):
            if edges[number].rank not in known:
                heappush(told, _told(number, _offset(edges[number], known[newest])))
        while told and told[0][-1].rank in known:
            heappop(told)
        if not told or not told[0][-1].is_known:
            break
        best = heappop(told)[-1]
        known[best.rank], newest = best, best.rank
    doubtful: dict[int, Offset] = {}
    for *_, offset in sorted(told, key=itemgetter(_NUMBER)):
        doubtful.setdefault(offset.rank, offset)
    alone = "no collective is known to be one with another rank's"
    return [known.get(rank) or doubtful.get(rank) or Offset(rank, why_not=alone) for rank in ranks]


def _told(number: int, offset: Offset) -> _Told:
    """What one edge says of a rank, the surest first; of edges that say it alike the first one."""
    return offset.why_not, offset.residual_ns, offset.rank, number, offset


def _offset(apart: Apart, base: Offset) -> Offset:
    """A rank's offset by that of the rank that it is compared with."""
    num, ends_ns = len(apart.ends_ns), apart.ends_ns
    middle = int(np.median(ends_ns)) if num else 0
    scattered = np.abs(ends_ns - middle)
    residual = int(np.quantile(scattered, 0.9, method="higher")) if num else 0
    return Offset(
        apart.rank,
        num,
        base.offset_ns + middle,
        base.residual_ns + residual,
        _sum(base.least_ns, apart.least_ns),
        _sum(base.most_ns, apart.most_ns),
        apart.base,
        apart.how,
        _why_not(num, middle, residual, apart),
        _least(base.unless_apart_ns, apart.unless_apart_ns),
    )


def _sum(base_ns: int | None, more_ns: int) -> int | None:
    """A bound by that of another rank; None where nothing bounds it."""
    return None if base_ns is None or abs(more_ns) >= FAR_NS else base_ns + more_ns


def _least(*told: int | None) -> int | None:
    return min((each for each in told if each is not None), default=None)


def _why_not(num: int, middle: int, residual: int, apart: Apart) -> str:
    """Why the ends do not tell how far the clocks are apart; empty where they do."""
    if num < LEAST_COLLECTIVES:
        return "too few collectives that both leave together are known to end"
    if residual > LARGEST_RESIDUAL_NS:
        return f"the ends of {num:,} collectives are scattered by {residual / 1e6:.3f} ms"
    if not apart.least_ns - residual <= middle <= apart.most_ns + residual:
        return "one of them left collectives before the other entered, by any one difference"
    return ""
