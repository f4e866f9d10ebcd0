"""Numbers as people read them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.units import (
    amount,
    count,
    duration,
    moment,
    of_one_trace,
    one_has_a_clock,
    quantity,
    shows_times,
    stated,
    tick_step,
    ticks,
)  # fmt: skip


def test_a_duration_has_its_natural_unit() -> None:
    assert [duration(ns) for ns in (0, 812, 3_040, 1_500_000, 26_100_000_000)] == [
        "0 ns", "812 ns", "3.04 µs", "1.50 ms", "26.1 s",
    ]  # fmt: skip


def test_a_moment_has_the_digits_that_its_resolution_deserves() -> None:
    assert moment(8_214_000, 1_000) == "8.214 ms"
    assert moment(4_019_286_000, 1_000) == "4.019286 s"


def test_evidence_says_its_unit_once() -> None:
    assert quantity("held_idle_ns", 3_000) == ("held idle", "3.00 µs")
    assert quantity("idle_share", 0.31) == ("idle", "31.0%")
    assert quantity("num_ready", 12) == ("num ready", "12")
    assert quantity("holder", "push 31/32") == ("holder", "push 31/32")


def test_thousands_are_separated() -> None:
    assert count(1_058) == "1,058"
    assert count(0.5) == "0.5"


@given(st.integers(1, 10**15), st.integers(1, 40))
def test_there_are_never_more_ticks_than_asked_for(span_ns: int, most: int) -> None:
    step = tick_step(span_ns, most)
    assert span_ns <= step * most


def test_ticks_are_round_and_name_their_unit_once() -> None:
    assert list(ticks(3_100, 5_200, 4)) == [(4_000, "4 µs"), (5_000, "5")]


def test_what_a_counter_says_of_a_time_is_a_duration() -> None:
    assert amount(6_000_000, "ns") == "6.00 ms"
    assert amount(2663.43, "token/s") == "2,663.43 token/s"
    assert amount(2, "") == "2"


def test_without_a_clock_moments_are_positions_and_only_stated_durations_are_durations() -> None:
    with of_one_trace(has_times=False):
        assert (moment(7_000, 1), duration(7_000), duration(1_000)) == (
            "position 7", "7 positions", "1 position",
        )  # fmt: skip
        assert (stated(43_500_000_000), amount(3_040.0, "ns")) == ("43.5 s", "3.04 µs")
        assert [label for _, label in ticks(0, 20_000, 5)] == ["position 0", "5", "10", "15"]
        assert [label for _, label in ticks(0, 2_000, 50)] == ["position 0", "1"]

    assert duration(7_000) == "7.00 µs"


def test_of_traces_shown_together_one_with_a_clock_is_enough_for_times() -> None:
    with of_one_trace():
        one_has_a_clock(has_times=False)
        assert not shows_times()
        one_has_a_clock(has_times=True)
        one_has_a_clock(has_times=False)
        assert shows_times()
