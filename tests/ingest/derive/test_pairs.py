"""Begins and ends, matched like brackets."""

from __future__ import annotations

from stepscope.ingest.derive.pairs import pair

BEGIN, END = True, False


def test_an_end_closes_the_latest_begin_of_its_key() -> None:
    ends, unmatched = pair(
        [(0, "a", "x", BEGIN), (1, "b", "x", BEGIN), (2, "a", "y", BEGIN), (3, "a", None, END),
         (4, "b", "x", END), (5, "a", "x", END)]
    )  # fmt: skip

    assert ends == {2: 3, 1: 4, 0: 5}
    assert unmatched == []


def test_an_end_that_names_an_outer_begin_leaves_the_inner_ones_open() -> None:
    ends, unmatched = pair(
        [(0, "a", "x", BEGIN), (1, "a", "y", BEGIN), (2, "a", "x", END), (3, "a", "y", END)]
    )

    assert ends == {0: 2}
    assert unmatched == [3]


def test_an_end_of_a_name_that_never_began_closes_nothing() -> None:
    ends, unmatched = pair([(0, "a", "x", BEGIN), (1, "a", "z", END), (2, "a", "x", END)])

    assert ends == {0: 2}
    assert unmatched == [1]
