"""Rows that are laid out flat say what the frame says, in memory and mapped from files."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.debug.held import flat_rows
from stepscope.app.debug.held.flat_rows import FlatRows
from stepscope.app.debug.held.narrow_numbers import NEVER, narrow, searched, within
from tests.looped import looped

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
NUMBERS = st.integers(-200, 200) | st.sampled_from([NEVER, 127, 128, 32767, (1 << 31) - 1]) | INT64
TEXTS = st.sampled_from(["", "a", "b", "req-1", "größer", "\0", "\U0001f600"]) | st.text(max_size=5)


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    """Numbers and texts, some of which are not known."""
    size = draw(st.integers(0, 12))
    columns = {
        "number": pl.Series(draw(st.lists(NUMBERS, min_size=size, max_size=size)), dtype=pl.Int64),
        "unknown": pl.Series(
            draw(st.lists(st.none() | NUMBERS, min_size=size, max_size=size)), dtype=pl.Int64
        ),
        "text": pl.Series(draw(st.lists(TEXTS, min_size=size, max_size=size)), dtype=pl.String),
        "null": pl.Series(
            draw(st.lists(st.none() | TEXTS, min_size=size, max_size=size)), dtype=pl.String
        ),
    }
    return pl.DataFrame(columns)


@given(frames(), st.lists(TEXTS, max_size=3), st.sampled_from(["text", "null"]), st.booleans())
def test_flat_rows_say_what_the_frame_says(
    frame: pl.DataFrame, wanted: list[str], sought: str, are_few: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flat_rows, "FEW_TEXTS", 4096 if are_few else 0)
        laid_out = FlatRows.of(frame, sought)
    rows = FlatRows.from_arrays(laid_out.arrays(), len(frame))

    assert len(rows) == len(frame)
    assert rows.rows(range(len(frame)), frame.columns) == frame.rows()
    assert rows.rows([], frame.columns) == []
    for text in wanted:
        expected = frame.with_row_index().filter(pl.col(sought) == text)["index"]
        assert rows.places_of(sought, text).tolist() == expected.to_list()


@given(frames(), TEXTS, st.sampled_from(["text", "null"]))
def test_texts_of_one_digest_are_told_apart(frame: pl.DataFrame, wanted: str, sought: str) -> None:
    digests = pl.Series.hash
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pl.Series, "hash", lambda texts: digests(texts) % 2)
        rows = FlatRows.of(frame, sought)
        found = rows.places_of(sought, wanted).tolist()

    expected = frame.with_row_index().filter(pl.col(sought) == wanted)["index"]
    assert found == expected.to_list()


def test_few_texts_lie_there_once(tmp_path: Path) -> None:
    frame = pl.DataFrame({"text": ["decode", "prefill"] * 5_000})

    rows = FlatRows.of(frame)
    np.save(tmp_path / "utf8.npy", rows.texts("text").utf8)

    assert bytes(np.load(tmp_path / "utf8.npy")) == b"decodeprefill"
    assert rows.rows([9_998, 9_999], ["text"]) == [("decode",), ("prefill",)]


@looped("rare", ["an abort", None])
def test_a_text_that_no_sample_has_is_among_the_few(rare: str | None) -> None:
    texts = ["decode", "prefill"] * flat_rows.SAMPLE
    texts[1] = rare or texts[1]
    frame = pl.DataFrame({"text": [*texts, rare]})

    rows = FlatRows.of(frame)

    assert rows.rows([0, 1, len(texts)], ["text"]) == [("decode",), (texts[1],), (rare,)]
    assert len(rows.texts("text").codes) == len(frame)


@given(st.lists(NUMBERS, max_size=9), NUMBERS, st.sampled_from(["left", "right"]))
def test_a_number_is_found_among_narrow_ones(
    numbers: list[int], wanted: int, side: Literal["left", "right"]
) -> None:
    values = np.array(sorted(numbers), np.int64)

    assert searched(narrow(values), wanted, side) == int(np.searchsorted(values, wanted, side))


@given(st.lists(st.integers(0, 300) | st.just(NEVER), max_size=9), st.integers(0, 299))
def test_what_never_ends_lasts_however_narrow_it_is(ends: list[int], now: int) -> None:
    values = np.array(ends, np.int64)

    narrowed = narrow(values, is_end=True)

    assert (narrowed > within(narrowed, now)).tolist() == (values > now).tolist()
    assert narrowed.nbytes <= values.nbytes // (4 if len(ends) else 1)
