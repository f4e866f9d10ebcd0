"""Rows are found by whom they are about, in their order, and nobody else's."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.debug.why.rows_by_name import RowsByName

NAMES = st.none() | st.sampled_from(["a", "b", "", "[b]"])
NUMBERS = st.none() | st.sampled_from([0, 7, -(2**62), 2**62])


@given(st.lists(NAMES, max_size=20) | st.lists(NUMBERS, max_size=20))
def test_all_rows_about_somebody_are_found_in_their_order(names: list[str | int | None]) -> None:
    dtype = pl.String if any(isinstance(name, str) for name in names) else pl.Int64
    rows = pl.DataFrame({"name": pl.Series(names, dtype=dtype), "place": range(len(names))})

    found = RowsByName(rows, "name")

    known = list(dict.fromkeys(name for name in names if name is not None))
    assert found.names() == known
    assert len(found) == len(names)
    for name in known:
        assert name in found
        assert [row["place"] for row in found.of(name)] == [
            place for place, each in enumerate(names) if each == name
        ]


def test_nobody_is_found_by_a_name_that_no_row_has() -> None:
    found = RowsByName(pl.DataFrame({"name": ["a"]}), "name")

    assert "b" not in found
    assert 7 not in RowsByName(pl.DataFrame({"name": [1]}), "name")
    assert found.of("b") == []
