"""Spans of requests say of any place who waits and runs, as applying every event does."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.debug.held.by_name import ByName
from stepscope.app.debug.held.index import laid_out
from stepscope.app.debug.held.queue_spans import QueueSpans, queue_spans
from stepscope.ingest.schema import LIFECYCLE_EVENTS
from tests.app.debug.held.test_queues import Rows, frame_of, lifecycles, queues_of
from tests.looped import looped
from tests.tiers import slow

END = 31


def spans_of(told: pl.DataFrame, by_request: ByName | None = None) -> QueueSpans | None:
    part = laid_out(queue_spans(told, by_request))
    return None if part is None else QueueSpans(**part)


@st.composite
def at_the_ends(draw: st.DrawFn) -> Rows:
    """Any order of events in which everyone joins the queue at its front or its back."""
    row = st.fixed_dictionaries(
        {
            "ts_ns": st.integers(0, END - 1),
            "request": st.sampled_from("abcdef"),
            "event": st.sampled_from(LIFECYCLE_EVENTS),
            "queue_index": st.sampled_from([None, 0, 99]),
        }
    )
    return sorted(draw(st.lists(row, max_size=60)), key=lambda each: int(each["ts_ns"]))


@slow
@given(at_the_ends())
def test_spans_say_at_every_place_what_applying_the_events_says(rows: Rows) -> None:
    told = frame_of("lifecycle", rows)

    applied = queues_of(told)

    for spans in (spans_of(told), spans_of(told, ByName.of(told["request"]))):
        assert spans is not None
        assert [spans.at(ts_ns) for ts_ns in range(-1, END)] == [
            applied.at(ts_ns) for ts_ns in range(-1, END)
        ]


@given(lifecycles())
def test_spans_are_right_or_are_not_given(rows: Rows) -> None:
    told = frame_of("lifecycle", rows)

    spans, applied = spans_of(told), queues_of(told)

    if spans is not None:
        assert all(spans.at(ts_ns) == applied.at(ts_ns) for ts_ns in range(-1, END))


@looped("index", [1, -1])
def test_no_spans_are_given_where_somebody_is_put_into_the_middle(index: int) -> None:
    rows = [
        {"ts_ns": 0, "request": "a", "event": "arrive"},
        {"ts_ns": 1, "request": "b", "event": "arrive"},
        {"ts_ns": 2, "request": "c", "event": "arrive", "queue_index": index},
    ]

    assert queue_spans(frame_of("lifecycle", rows)) is None


def test_nobody_waits_or_runs_where_nothing_is_told() -> None:
    spans = spans_of(frame_of("lifecycle", []))

    assert spans is not None
    assert spans.at(0) == ((), ())


def test_many_requests_are_found_at_any_place() -> None:
    number = pl.int_range(0, 100_000, eager=True)
    told = pl.DataFrame({"seq": number, "request": [f"r{each}" for each in number]}).with_columns(
        event=pl.lit("arrive"), queue_index=pl.lit(None, pl.Int32)
    )

    spans = spans_of(told)

    assert spans is not None
    assert spans.at(2) == (("r0", "r1", "r2"), ())
    assert len(spans.at(99_999)[0]) == 100_000


def test_who_never_leaves_waits_behind_any_number_of_changes() -> None:
    told = pl.DataFrame(
        {
            "seq": [1, 200, 201, 70_000, 70_001],
            "request": ["stays", "goes", "comes", "goes", "comes"],
            "event": ["arrive", "arrive", "arrive", "finish", "admit"],
        }
    ).with_columns(queue_index=pl.lit(None, pl.Int32))

    spans = spans_of(told)

    assert spans is not None
    assert spans.at(60_000) == (("stays", "goes", "comes"), ())
    assert spans.at(1 << 40) == (("stays",), ("comes",))
