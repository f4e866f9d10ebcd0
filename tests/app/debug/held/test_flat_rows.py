"""Rows that are laid out flat say what the frame says, in memory and mapped from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.debug.held import flat_rows
from stepscope.app.debug.held.flat_rows import FlatRows

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TEXTS = st.sampled_from(["", "a", "b", "req-1", "größer", "\0", "\U0001f600"]) | st.text(max_size=5)


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    """Numbers and texts, some of which are not known."""
    size = draw(st.integers(0, 12))
    columns = {
        "number": pl.Series(draw(st.lists(INT64, min_size=size, max_size=size)), dtype=pl.Int64),
        "unknown": pl.Series(
            draw(st.lists(st.none() | INT64, min_size=size, max_size=size)), dtype=pl.Int64
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
    half = len(frame) // 2
    expected = frame.with_row_index()[half:].filter(pl.col(sought).is_in(wanted))["index"]
    assert rows.texts(sought).places_of(wanted, half, len(frame)).tolist() == expected.to_list()


def test_texts_of_one_digest_are_told_apart() -> None:
    column = FlatRows.of(pl.DataFrame({"text": ["a", "b", "c"]}), "text").texts("text")

    same = column._replace(keys=np.full(3, pl.Series(["b"]).hash()[0], np.uint64))

    assert same.places_of(["b"], 0, 3).tolist() == [1]


def test_few_texts_lie_there_once(tmp_path: Path) -> None:
    frame = pl.DataFrame({"text": ["decode", "prefill"] * 5_000})

    rows = FlatRows.of(frame)
    np.save(tmp_path / "utf8.npy", rows.texts("text").utf8)

    assert bytes(np.load(tmp_path / "utf8.npy")) == b"decodeprefill"
    assert rows.rows([9_998, 9_999], ["text"]) == [("decode",), ("prefill",)]
