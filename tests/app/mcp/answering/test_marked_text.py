"""Text of a trace is shown as text: it steers nothing, is no markup, and can be given back."""

from __future__ import annotations

import math

from stepscope.app.mcp.answering.marked_text import Bounded, marked, named_as
from tests.looped import looped


@looped(
    ("text", "shown"),
    [
        ("req-07", "req-07"),
        ("a\x1b[31mb", "a·[31mb"),
        ("a\u202eb", "a·b"),
        ("a\nb\r\u2028c", "a·b··c"),
        ("<script>`x`", "\u2039script\u203a\u02cbx\u02cb"),
        ("![i](http://x)", "![i] (http://x)"),
        ("\ud800", "·"),
    ],
)
def test_what_steers_or_marks_up_is_shown_and_does_neither(text: str, shown: str) -> None:
    assert marked(text) == shown


def test_a_long_text_is_cut_and_says_how_long_it_is() -> None:
    assert marked("x" * 1_000_000) == "x" * 300 + "… (1,000,000 characters)"


def test_a_name_can_be_given_back_as_it_was_shown() -> None:
    odd = "<b>\x07" + "y" * 400

    assert named_as(marked(odd), ["plain", odd]) == odd
    assert named_as("plain", ["plain", odd]) == "plain"
    assert named_as("nobody", ["plain", odd]) == "nobody"


def test_a_name_that_is_shown_as_it_is_goes_before_one_that_looks_like_it() -> None:
    assert named_as("a·b", ["a\nb", "a·b"]) == "a·b"


def test_what_json_has_no_number_for_is_a_text() -> None:
    made = Bounded().of([math.nan, math.inf, 2**53 + 1, 2**53, -(2**63), 1.5, True])

    assert made == ["nan", "inf", str(2**53 + 1), 2**53, str(-(2**63)), 1.5, True]
