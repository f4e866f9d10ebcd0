"""Of many texts, the last row that has each is found at once, as it is one by one."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.debug.held.by_name import ByName
from stepscope.app.debug.held.flat_rows import MANY, FlatRows, Texts

NAMES = st.sampled_from([f"req-{number}" for number in range(12)])
ROWS = st.lists(st.tuples(NAMES, st.booleans()), max_size=60)


def rows_of(told: list[tuple[str, bool]]) -> FlatRows:
    names = pl.DataFrame({"request": [name for name, _ in told]}, schema={"request": pl.String})
    return FlatRows.of(names, "request")


@given(ROWS, st.lists(NAMES, max_size=8))
def test_it_is_the_last_row_that_counts(told: list[tuple[str, bool]], few: list[str]) -> None:
    wanted = [*few, *(f"absent-{number}" for number in range(MANY))]
    counts = np.array([is_it for _, is_it in told], bool)

    found = rows_of(told).last_of("request", wanted, counts.__getitem__)

    of_name = {name: at for at, (name, is_it) in enumerate(told) if is_it}
    assert found == [of_name.get(name, -1) for name in wanted]
    assert rows_of(told).last_of("request", few, counts.__getitem__) == found[: len(few)]


def test_two_texts_of_one_digest_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = FlatRows.of(pl.DataFrame({"request": ["a", "b", "a"]}), "request")
    (by_name,) = (each for each in rows._columns.values() if isinstance(each, ByName))
    monkeypatch.setattr(ByName, "places_of", lambda _own, texts: [by_name.places] * len(texts))
    shared = by_name._replace(is_exact=np.array([False]))
    rows._columns = {**rows._columns, "rows_of_request": shared}

    marks = np.array([True, True, False])
    found = rows.last_of("request", ["a", "b", *["c"] * MANY], marks.__getitem__)

    assert found[:3] == [0, 1, -1]


@given(st.lists(st.one_of(st.none(), NAMES), max_size=80))
def test_texts_of_many_rows_are_those_of_each(texts: list[str | None]) -> None:
    laid = Texts.of(pl.Series(texts, dtype=pl.String))

    assert laid.take(range(len(texts))) == texts
    wanted = {"req-1", "req-2"}
    every = np.arange(len(texts))
    assert laid.are_among(wanted, every).tolist() == [text in wanted for text in texts]
    assert laid.are_among(wanted, every[1::2]).tolist() == [text in wanted for text in texts[1::2]]
