"""Codes of values tell them apart, whatever their digests are."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.debug.held.following import MOST_CODES, codes

FEW = st.lists(st.sampled_from(["a", "b", "", "req-1", "a longer name than a view holds"]))
DIGESTS = pl.Series.hash


def tells_apart(values: list[str]) -> bool:
    """Whether equal values have equal codes, and others have others."""
    found = codes(pl.Series(values, dtype=pl.String)).tolist()
    told = set(zip(values, found, strict=True))
    return len(told) == len(set(values)) == len(set(found)) and all(
        0 <= code < MOST_CODES for code in found
    )


@given(FEW)
def test_equal_texts_have_equal_codes_and_others_have_others(values: list[str]) -> None:
    assert tells_apart(values)


@pytest.mark.parametrize("num_digests", [1, 2, 1 << 40])
@given(values=FEW)
def test_texts_that_share_a_digest_or_its_first_bits_are_told_apart(
    num_digests: int, values: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pl.Series, "hash", lambda texts: DIGESTS(texts) % num_digests)
        assert tells_apart(values)
