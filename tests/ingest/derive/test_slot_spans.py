"""Who was in each slot and what it did there, and what an earlier request left in it."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.ingest.derive.slot_spans import old_tokens, slot_spans
from stepscope.ingest.trace import Trace
from tests.traces import trace_of

Rows = list[dict[str, Any]]
EVERY_NS, NUM_STEPS = 10, 8
SLOT = {"resource": "slot", "id": 0}


def steps_of(lasts: list[int]) -> Rows:
    return [
        {"step": number, "ts_ns": EVERY_NS * number, "dur_ns": dur_ns, "kind": "decode"}
        for number, dur_ns in enumerate(lasts)
    ]


def row_of(step: int, request: str, phase: str = "decode", **more: Any) -> dict[str, Any]:
    return {"step": step, "ts_ns": EVERY_NS * step, "request": request, "phase": phase,
            "slot": 0, "num_tokens": 1, **more}  # fmt: skip


def told(trace: Trace) -> list[tuple[Any, ...]]:
    return slot_spans(trace).select("request", "state", "from_ns", "to_ns").rows()


def expected(seats: list[tuple[str, str] | None], lasts: list[int], ts_ns: int) -> Any:
    """What a slot shows at a time, looked up step by step."""
    step = ts_ns // EVERY_NS
    last = next((each for each in reversed(seats[: step + 1]) if each), None)
    following = next((each for each in seats[step + 1 :] if each), None)
    own, after = seats[step], (*seats, None)[step + 1]
    if own and (ts_ns < EVERY_NS * step + lasts[step] or own == after):
        return own
    is_there = last is not None and following is not None and last[0] == following[0]
    return (last[0], "idle") if is_there and last else None


@settings(max_examples=15)
@given(
    st.lists(
        st.none() | st.tuples(st.sampled_from("ab"), st.sampled_from(["prefill", "decode"])),
        min_size=NUM_STEPS, max_size=NUM_STEPS,
    ),
    st.lists(st.integers(1, EVERY_NS), min_size=NUM_STEPS, max_size=NUM_STEPS),
)  # fmt: skip
def test_a_slot_shows_at_every_moment_what_its_rows_say(
    seats: list[tuple[str, str] | None], lasts: list[int]
) -> None:
    rows = [row_of(step, *seat) for step, seat in enumerate(seats) if seat]
    spans = told(trace_of(steps=steps_of(lasts), batch_rows=rows))

    for ts_ns in range(EVERY_NS * NUM_STEPS):
        shown = [span[:2] for span in spans if span[2] <= ts_ns < span[3]]
        wanted = expected(seats, lasts, ts_ns)
        assert shown == ([] if wanted is None else [wanted]), ts_ns


def test_a_request_is_idle_in_its_slot_from_its_claim_to_its_release_where_it_has_no_row() -> None:
    trace = trace_of(
        steps=steps_of([10] * 5),
        allocations=[
            {**SLOT, "ts_ns": 0, "op": "claim", "owner": "a"},
            {**SLOT, "ts_ns": 45, "op": "release", "owner": "a"},
            {**SLOT, "ts_ns": 47, "op": "claim", "owner": "b"},
        ],
        batch_rows=[row_of(1, "a", "prefill"), row_of(2, "a"), row_of(3, "a")],
    )

    assert told(trace) == [
        ("a", "idle", 0, 10), ("a", "prefill", 10, 20), ("a", "decode", 20, 40),
        ("a", "idle", 40, 45), ("b", "idle", 47, None),
    ]  # fmt: skip


def test_what_a_request_does_in_a_slot_is_unknown_where_no_row_names_a_slot() -> None:
    trace = trace_of(allocations=[{**SLOT, "ts_ns": 3, "op": "claim", "owner": "a"}])

    assert told(trace) == [("a", "unknown", 3, None)]


def test_two_requests_with_a_row_for_one_slot_in_one_step_are_both_there() -> None:
    trace = trace_of(steps=steps_of([10]), batch_rows=[row_of(0, "a"), row_of(0, "b")])

    assert told(trace) == [("a", "decode", 0, 10), ("b", "decode", 0, 10)]


def recycled(*lengths: tuple[int, int, int]) -> Trace:
    """`b` takes the slot over from `a` at step 2; `lengths` are steps, times and tokens there."""
    return trace_of(
        steps=steps_of([10] * 5),
        allocations=[
            {**SLOT, "ts_ns": 0, "step": 0, "op": "claim", "owner": "a"},
            {**SLOT, "ts_ns": 20, "step": 1, "op": "release", "owner": "a"},
            {**SLOT, "ts_ns": 20, "step": 2, "op": "claim", "owner": "b"},
            {**SLOT, "ts_ns": 50, "step": 4, "op": "release", "owner": "b"},
        ],
        batch_rows=[
            row_of(0, "a", "prefill", num_computed=0, num_tokens=9),
            row_of(2, "b", "prefill", num_computed=0, num_tokens=5),
            row_of(3, "b", num_computed=5), row_of(4, "b", num_computed=6),
        ],
        slot_tokens=[
            {"slot": 0, "step": step, "ts_ns": ts_ns, "num_tokens": num}
            for step, ts_ns, num in ((0, 10, 9), *lengths)
        ],
    )  # fmt: skip


def old(trace: Trace) -> list[tuple[Any, ...]]:
    return old_tokens(trace).select("request", "from_ns", "to_ns", "num_tokens", "num_own").rows()


def test_tokens_of_an_earlier_request_are_told_while_the_next_one_uses_its_slot() -> None:
    assert old(recycled((2, 30, 14), (3, 40, 15))) == [("b", 20, 50, 9, 0)]


def test_a_slot_that_is_cleared_before_its_next_request_computes_has_no_old_tokens() -> None:
    assert old(recycled((2, 21, 0), (2, 30, 5), (3, 40, 6))) == []


def test_old_tokens_end_when_the_slot_is_cleared() -> None:
    assert old(recycled((2, 30, 14), (3, 40, 6))) == [("b", 20, 40, 9, 0)]
