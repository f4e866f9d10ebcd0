"""Text from a trace cannot steer a terminal."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.printable import plain


@given(st.text(st.characters()))
def test_plain_text_holds_nothing_that_steers_a_terminal(text: str) -> None:
    cleaned = plain(text)

    assert len(cleaned) == len(text)
    assert not {unicodedata.category(char) for char in cleaned} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_plain_text_keeps_every_letter(text: str) -> None:
    assert plain(text) == text


def test_an_escape_sequence_becomes_visible() -> None:
    assert plain("qk\x1b[31m\npv") == "qk·[31m·pv"
