"""Whose clock tells whose, and that a thousand ranks are reckoned in no more than one round."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.derive.collectives import clocks
from stepscope.ingest.derive.collectives.clocks import Apart, Offset, clock_offsets

NUM_RANKS = 7


def in_rounds(apart: list[Apart], reference: int, ranks: list[int]) -> list[Offset]:
    """The same by its definition: in each round all are asked again, and the surest one is kept."""
    edges = [each for pair in apart for each in (pair, pair.reversed())]
    known = {reference: Offset(reference)}
    while found := [
        clocks._offset(each, known[each.base])
        for each in edges
        if each.base in known and each.rank not in known
    ]:
        best = min(found, key=lambda offset: (offset.why_not, offset.residual_ns, offset.rank))
        if not best.is_known:
            known = {each.rank: each for each in reversed(found)} | known
            break
        known[best.rank] = best
    alone = "no collective is known to be one with another rank's"
    return [known.get(rank) or Offset(rank, why_not=alone) for rank in ranks]


@st.composite
def edges(draw: st.DrawFn) -> Apart:
    base = draw(st.integers(0, NUM_RANKS - 1))
    rank = draw(st.integers(0, NUM_RANKS - 1).filter(lambda each: each != base))
    num = draw(st.integers(0, 5))
    middle_ns = draw(st.integers(-10, 10)) * 100_000
    noise_ns = draw(st.sampled_from((0, 3, 1_000, 5_000_000)))
    ends_ns = middle_ns + noise_ns * np.arange(num, dtype=np.int64) ** 2
    least_ns = middle_ns - draw(st.sampled_from((100, -10_000_000)))
    return Apart(base, rank, ends_ns, least_ns, least_ns + 200, draw(st.sampled_from("ab")))


@given(st.lists(edges(), max_size=20))
def test_the_surest_edge_is_taken_next_until_none_is_sure(apart: list[Apart]) -> None:
    ranks = list(range(1, NUM_RANKS))

    assert clock_offsets(apart, 0, ranks) == in_rounds(apart, 0, ranks)


def star(num_ranks: int) -> Iterator[Apart]:
    for rank in range(1, num_ranks):
        yield Apart(0, rank, np.full(5, 1_000_000 * rank), -1 << 40, 1 << 40, "sequence numbers")


def test_what_one_rank_says_of_another_is_reckoned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    reckoned = clocks._offset

    def counted(apart: Apart, base: Offset) -> Offset:
        asked.append((apart.base, apart.rank))
        return reckoned(apart, base)

    monkeypatch.setattr(clocks, "_offset", counted)

    found = clock_offsets(star(1_024), 0, range(1, 1_024))

    assert [offset.offset_ns for offset in found] == [1_000_000 * rank for rank in range(1, 1_024)]
    assert len(asked) == 1_023
