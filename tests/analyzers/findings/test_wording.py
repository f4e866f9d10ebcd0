"""Numbers as findings say them."""

from __future__ import annotations

from stepscope.analyzers.findings.wording import duration, times
from tests.looped import looped


@looped(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (3_000, "3.0 µs"),
        (12_400_000, "12.4 ms"),
        (8_150_000_000, "8.2 s"),
        (1_234_500_000_000, "1,234.5 s"),
        (-4_000, "-4.0 µs"),
    ],
)
def test_a_duration_is_said_in_the_unit_in_which_it_is_read_best(ns: int, text: str) -> None:
    assert duration(ns) == text


def test_counts_take_the_plural_but_for_one() -> None:
    assert [times(n, "block") for n in (0, 1, 2_000)] == ["0 blocks", "1 block", "2,000 blocks"]
