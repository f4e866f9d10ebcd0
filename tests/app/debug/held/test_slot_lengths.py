"""What lies in slots at any place is what the last row about each says."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.debug import Session
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.facets.look import Look
from stepscope.app.debug.facets.of_memory import OF_MEMORY
from stepscope.app.debug.held.index import laid_out
from stepscope.app.debug.held.slot_lengths import SlotLengths, lengths_of
from stepscope.ingest.trace import Trace
from tests.traces import trace_of

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(1, 4)), max_size=30)


@given(ROWS)
def test_a_slot_has_what_was_told_last_and_nothing_before_the_first(
    told: list[tuple[int, int, int]],
) -> None:
    seqs = [sum(gap for *_, gap in told[: place + 1]) for place in range(len(told))]
    rows = pl.DataFrame(
        [(slot, tokens, seq) for (slot, tokens, _), seq in zip(told, seqs, strict=True)],
        schema={"slot": pl.Int32, "num_tokens": pl.Int64, "seq": pl.Int64}, orient="row",
    )  # fmt: skip
    lengths = SlotLengths(**laid_out({"lengths": lengths_of(rows)}) or {})

    for at in range((seqs or [0])[-1] + 3):
        held = dict.fromkeys(sorted({slot for slot, *_ in told}), 0)
        for (slot, tokens, _), seq in zip(told, seqs, strict=True):
            held[slot] = tokens if seq <= at else held[slot]
        assert lengths.at(at) == held


def a_slot_that_is_filled(**tables: Any) -> Trace:
    """Two steps; the first leaves seven tokens in slot 2, which nobody has."""
    steps = [
        {"step": step, "ts_ns": 100 * step, "dur_ns": 50, "kind": "decode", "seq": seq}
        for step, seq in ((1, 1), (2, 4))
    ]
    lengths = [
        {"step": 1, "ts_ns": 100, "slot": 2, "num_tokens": 0, "seq": 2},
        {"step": 1, "ts_ns": 150, "slot": 2, "num_tokens": 7, "seq": 3},
    ]
    return trace_of(steps=steps, slot_tokens=lengths, **tables)


def test_a_step_stands_before_what_it_writes_into_slots() -> None:
    session = Session(a_slot_that_is_filled())

    assert (session.position.seq, session.state.slot_tokens) == (1, {2: 0})
    session.next()
    assert session.state.slot_tokens == {2: 7}
    assert [session.back("seq") and session.state.slot_tokens for _ in range(2)] == [{2: 7}, {2: 0}]


def test_a_trace_that_tells_nothing_of_it_has_no_empty_slots() -> None:
    session = Session(trace_of(steps=[{"step": 1, "ts_ns": 1, "kind": "decode"}]))

    assert session.state.slot_tokens is None


def test_a_slot_that_nobody_holds_is_shown_as_long_as_something_lies_in_it() -> None:
    claim = {"step": 1, "ts_ns": 90, "resource": "slot", "id": 1, "op": "claim", "owner": "a"}
    debugger = Debugger(a_slot_that_is_filled(allocations=[claim]))
    slots = {facet.name: facet for facet in OF_MEMORY}["slots"]

    found = {}
    for step in ("1", "2"):
        debugger.goto(step)
        shown = slots.at(Look.of(debugger))
        assert shown is not None
        found[step] = shown.select("id", "owner", "num_tokens").rows()

    assert found == {"1": [(1, "a", None)], "2": [(1, "a", None), (2, None, 7)]}
