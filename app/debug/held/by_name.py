"""Which rows have a text, of millions that each may have another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.debug.held.narrow_numbers import Numbers, narrow

Places = npt.NDArray[np.int64]
Digests = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]


class Grouped(NamedTuple):
    """Places by the digest of what is there, in order within each, and where another begins."""

    places: Places
    digests: Digests
    is_next: npt.NDArray[np.bool_]
    is_exact: bool
    """Whether each digest is that of one value alone."""


def grouped(values: pl.Series) -> Grouped:
    """Put values beside their equals, by digests that are sorted fast."""
    of_row = values.hash().to_numpy()
    low = np.uint64((1 << len(values).bit_length()) - 1)
    both = of_row & ~low
    both |= np.arange(len(values), dtype=np.uint64)
    both.sort()
    both &= low
    places = both.view(np.int64)
    digests = of_row[places]
    if (digests[1:] < digests[:-1]).any():  # some share their first bits
        places = np.argsort(of_row, kind="stable")
        digests = of_row[places]
    is_next = np.append(True, digests[1:] != digests[:-1])[: len(values)]
    in_order = values.rechunk().gather(places)  # of many pieces it takes several times as long
    is_same = in_order.eq_missing(in_order.shift()).to_numpy()
    return Grouped(places, digests, is_next, not (is_next[1:] == is_same[1:]).any())


class ByName(NamedTuple):
    """Rows by the digests of their texts: those of the n-th are `places[bounds[n]:bounds[n + 1]]`.

    Where it is not `is_exact`, texts may share a digest, and rows of all of them are there.
    """

    digests: Digests
    bounds: Numbers
    places: Numbers
    is_exact: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, texts: pl.Series) -> ByName:
        """Find the rows of each text."""
        found = grouped(texts)
        begins = np.flatnonzero(found.is_next)
        bounds = narrow(np.append(begins, len(texts)))
        exact = np.array([found.is_exact])
        return cls(found.digests[begins], bounds, narrow(found.places), exact)

    def in_groups(self) -> tuple[Places, npt.NDArray[np.bool_]]:
        """All rows text by text, in order within each, and whether each is the first of its text.

        For texts that have digests of their own.
        """
        is_first = np.zeros(len(self.places), bool)
        is_first[self.bounds[:-1]] = True
        return self.places.astype(np.int64), is_first

    def places_of(self, texts: Sequence[str]) -> list[Numbers]:
        """The rows that may have each text: where it is exact, all of them if the first has it."""
        wanted = pl.Series(texts, dtype=pl.String).hash().to_numpy()
        if not len(self.digests):
            return [self.places] * len(texts)
        group = np.minimum(np.searchsorted(self.digests, wanted), len(self.digests) - 1)
        is_here = self.digests[group] == wanted
        bounds = zip(self.bounds[group], self.bounds[group + is_here], strict=True)
        return [self.places[begin:end] for begin, end in bounds]

    def last_of(self, texts: pl.Series, is_it: Flags) -> Places:
        """Of each text the last row among those that `is_it` marks, -1 where there is none.

        It asks all rows at once, for who asks of many texts; of one that is not here it may give a
        row of another.
        """
        last = np.full(len(texts), -1, np.int64)
        if not len(self.places):
            return last
        order = np.where(is_it[self.places], np.arange(len(self.places)), -1)
        of_group = np.maximum.reduceat(order, self.bounds[:-1].astype(np.int64))
        wanted = texts.hash().to_numpy()
        group = np.minimum(np.searchsorted(self.digests, wanted), len(self.digests) - 1)
        at = np.where(self.digests[group] == wanted, of_group[group], -1)
        last[at >= 0] = self.places[at[at >= 0]]
        return last
