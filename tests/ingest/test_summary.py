"""Figures of a trace that are taken from its rows."""

from __future__ import annotations

from stepscope.ingest.summary import lengths
from tests.traces import trace_of


def test_a_prompt_whose_length_several_events_state_counts_once() -> None:
    rows = [
        {"request": request, "event": event, "ts_ns": at, "prompt_len": size, "max_tokens": 4}
        for request, size in (("a", 10), ("b", 20))
        for at, event in enumerate(("receive", "arrive"))
    ]

    known = lengths(trace_of(lifecycle=rows))

    prompts, outputs = known["prompts"], known["asked"]
    assert prompts is not None
    assert outputs is not None
    assert (prompts.requests, prompts.mean, prompts.total) == (2, 15.0, 30)
    assert (outputs.requests, outputs.total) == (2, 8)
