"""Columns as bytes, as a browser finds them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from stepscope.app.web.pictures.column_bytes import ALIGNMENT, with_columns
from tests.tiers import slow

COLUMNS = st.sampled_from(["<f8", "u1"]).flatmap(
    lambda dtype: arrays(dtype, array_shapes(max_dims=2, min_side=0, max_side=9))
)


def line_and_columns(packed: bytes) -> tuple[dict[str, Any], bytes]:
    """The line, and what lies behind it."""
    line, _, columns = packed.partition(b"\n")
    return json.loads(line), columns


@slow
@given(st.lists(COLUMNS), st.text())
def test_every_column_is_found_again_where_a_browser_needs_no_copy_of_it(
    columns: list[Any], label: str
) -> None:
    packed = with_columns({"named": label, "deep": [{"column": each} for each in columns]})

    head, behind = line_and_columns(packed)
    assert head["named"] == label
    begin = len(packed) - len(behind)
    for sent, place in zip(columns, head["deep"], strict=True):
        at, size = place["column"]
        assert (begin + at) % ALIGNMENT == 0
        found = np.frombuffer(behind[at : at + size], sent.dtype)
        np.testing.assert_array_equal(found, sent.ravel())


def test_text_of_a_trace_does_not_end_the_line() -> None:
    head, behind = line_and_columns(
        with_columns({"labels": ["a\nb", "\ud800", "é"], "x": np.ones(1)})
    )

    assert head["labels"] == ["a\nb", "\ud800", "é"]
    assert np.frombuffer(behind) == [1.0]


def test_without_columns_it_is_the_line_alone() -> None:
    assert line_and_columns(with_columns({"width": 4})) == ({"width": 4}, b"")


def test_what_is_neither_json_nor_a_column_is_refused() -> None:
    with pytest.raises(TypeError, match="set is neither JSON nor a column"):
        with_columns({"states": {1, 2}})
    with pytest.raises(ValueError, match="not JSON compliant"):
        with_columns({"low": float("nan")})
