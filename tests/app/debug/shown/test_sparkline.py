"""A line of blocks is as high as its values are."""

from __future__ import annotations

from stepscope.app.debug.shown.sparkline import blocks


def test_what_never_changes_stands_high_unless_it_is_nothing() -> None:
    assert blocks([12.0, 12.0], (12.0, 12.0)) == "██"
    assert blocks([0.0, None], (0.0, 0.0)) == "▁ "
    assert blocks([-3.0], (-3.0, -3.0)) == "▁"


def test_the_least_stands_low_and_the_most_high() -> None:
    assert blocks([1.0, 2.0, 3.0], (1.0, 3.0)) == "▁▅█"
