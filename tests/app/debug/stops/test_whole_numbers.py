"""A number in a text is one of which a table can have rows; nothing else is, and nothing fails."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.debug.stops.whole_numbers import whole_number
from tests.looped import looped


@given(st.integers(-(10**18) + 1, 10**18 - 1))
def test_a_number_is_read_as_it_was_written(number: int) -> None:
    assert whole_number(f" {number} ") == number


@looped("text", ["", "1.0", "²", "٣", "req-1", "9" * 19, "9" * 5_000])
def test_what_is_no_number_is_none(text: str) -> None:
    assert whole_number(text) is None
