"""When the segments of a step ran: as recorded, or its time divided among them."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.ingest.derive.segments import AT_ONCE, BY_TOKENS, IN_EQUAL_PARTS, segment_times
from tests.traces import trace_of

STEP = {"step": 1, "ts_ns": 100, "dur_ns": 80, "kind": "mixed"}


def segment(number: int, num_tokens: int | None = 1, ts_ns: int = 100, **more: Any) -> Any:
    phase = "prefill" if number == 0 else "decode"
    row = {"step": 1, "ts_ns": ts_ns, "segment": number, "phase": phase, "num_tokens": num_tokens,
           "num_rows": 1}  # fmt: skip
    return row | more


def times(*segments: Any, **step: Any) -> list[tuple[int, int | None, str | None]]:
    steps = [] if step.get("step", 1) is None else [STEP | step]
    found = segment_times(trace_of(steps=steps, segments=segments)).sort("ref").collect()
    return found.select("from_ns", "to_ns", "division").rows()


def test_a_step_is_divided_by_the_tokens_of_segments_that_have_no_times_of_their_own() -> None:
    assert times(segment(0, 30), segment(1, 10)) == [
        (100, 160, BY_TOKENS), (160, 180, BY_TOKENS),
    ]  # fmt: skip


def test_segments_that_began_one_after_the_other_last_until_the_next_or_the_end_of_the_step() -> (
    None
):
    assert times(segment(0, 1, 105), segment(1, 99, 170)) == [(105, 170, None), (170, 180, None)]


def test_where_a_segments_tokens_are_not_known_the_parts_are_equal() -> None:
    found = times(segment(0, None), segment(1, 10))

    assert found == [(100, 140, IN_EQUAL_PARTS), (140, 180, IN_EQUAL_PARTS)]


def test_halves_that_overlap_last_as_long_as_their_step() -> None:
    halves = times(segment(0), segment(1), executed_path="simulated-prefill+tbo")

    assert halves == [(100, 180, AT_ONCE)] * 2


def test_a_segment_of_a_step_whose_end_is_not_recorded_has_none() -> None:
    assert times(segment(0, 30), segment(1, 10), dur_ns=None) == [(100, None, BY_TOKENS)] * 2
    assert times(segment(0), step=None) == [(100, None, None)]


@settings(max_examples=20)
@given(st.lists(st.integers(0, 1_000), min_size=2, max_size=5), st.integers(0, 10**6))
def test_the_parts_of_a_step_follow_each_other_and_are_as_long_as_their_tokens(
    tokens: list[int], dur_ns: int
) -> None:
    found = times(*(segment(at, each) for at, each in enumerate(tokens)), dur_ns=dur_ns)

    weights = tokens if sum(tokens) else [1] * len(tokens)
    ends = [100 + round(dur_ns * (sum(weights[: at + 1]) / sum(weights)))
            for at in range(len(tokens))]  # fmt: skip
    assert [to_ns for _, to_ns, _ in found] == ends
    assert [from_ns for from_ns, _, _ in found] == [100, *ends[:-1]]
