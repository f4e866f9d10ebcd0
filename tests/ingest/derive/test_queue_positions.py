"""Who was at each position of a waiting queue equals applying the events one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.ingest.derive import queue_positions as derived
from stepscope.ingest.derive.queue_positions import queue_positions
from stepscope.ingest.derive.states import unknown_admissions
from stepscope.ingest.schema import LIFECYCLE_EVENTS
from stepscope.ingest.trace import Trace
from tests.app.debug.held.test_queues import frame_of, queues_of
from tests.traces import trace_of

Rows = list[dict[str, Any]]
END = 16
EVENTS = st.fixed_dictionaries(
    {
        "ts_ns": st.integers(0, END - 1), "request": st.sampled_from("abcde"),
        "event": st.sampled_from(LIFECYCLE_EVENTS), "queue_index": st.sampled_from([None, 0, 1, 9]),
    }
)  # fmt: skip
ORDERS = st.dictionaries(st.integers(0, END - 1), st.permutations("abcde"), max_size=3)


def ordered(rows: Rows) -> Rows:
    return [{**row, "seq": row["ts_ns"]} for row in sorted(rows, key=lambda row: row["ts_ns"])]


def told(trace: Trace) -> list[tuple[Any, ...]]:
    return queue_positions(trace).select("position", "request", "from_ns", "to_ns").rows()


def line_at(spans: list[tuple[Any, ...]], ts_ns: int) -> list[str]:
    """The requests of all positions at a time, from the head of the line."""
    there = {
        position: request
        for position, request, since, until in spans
        if since <= ts_ns and (until is None or ts_ns < until)
    }
    assert [*there] == [*range(len(there))]
    return [*there.values()]


@settings(max_examples=20)
@given(st.lists(EVENTS, max_size=40), ORDERS)
def test_positions_are_those_of_applying_every_event(
    events: Rows, orders: dict[int, list[str]]
) -> None:
    lifecycle = ordered([*events, {"ts_ns": END, "request": "z", "event": "admit"}])
    queue_order = ordered(
        [
            {"ts_ns": ts_ns, "index": index, "request": request}
            for ts_ns, requests in orders.items()
            for index, request in enumerate(requests)
        ]
    )
    trace = trace_of(lifecycle=lifecycle, queue_order=queue_order)
    unknown = {*unknown_admissions(trace.lifecycle).collect()["request"]}
    known = [row for row in lifecycle if row["request"] not in unknown]
    applied = queues_of(frame_of("lifecycle", known), frame_of("queue_order", queue_order))

    spans = told(trace)
    for ts_ns in range(END + 1):
        assert tuple(line_at(spans, ts_ns)) == applied.at(ts_ns)[0], ts_ns


def life(*events: tuple[int, str, str]) -> Rows:
    return [{"ts_ns": ts_ns, "request": name, "event": event} for ts_ns, name, event in events]


def test_a_blocked_head_of_the_line_is_one_span_however_many_come_and_go_behind_it() -> None:
    trace = trace_of(
        lifecycle=life(
            (0, "a", "arrive"), (1, "b", "arrive"), (2, "c", "arrive"), (3, "b", "abort"),
            (4, "d", "arrive"), (9, "a", "admit"),
        )
    )  # fmt: skip

    assert told(trace) == [
        (0, "a", 0, 9), (0, "c", 9, None), (1, "b", 1, 3), (1, "c", 3, 9), (1, "d", 9, None),
        (2, "c", 2, 3), (2, "d", 4, 9),
    ]  # fmt: skip


def test_who_waits_is_unknown_where_no_admission_is_recorded() -> None:
    assert told(trace_of(lifecycle=life((0, "a", "arrive"), (5, "a", "finish")))) == []


def test_each_order_of_a_queue_holds_until_the_next_where_nothing_else_is_recorded() -> None:
    rows = [(1, 0, "a", "q"), (1, 1, "b", "q"), (5, 0, "b", "q"), (2, 0, "c", None)]
    columns = ("ts_ns", "index", "request", "queue")
    trace = trace_of(queue_order=[dict(zip(columns, row, strict=True)) for row in rows])

    found = queue_positions(trace).select("queue", "position", "request", "from_ns", "to_ns")

    assert found.rows() == [
        (None, 0, "c", 2, None), ("q", 0, "a", 1, 5), ("q", 0, "b", 5, None), ("q", 1, "b", 1, 5),
    ]  # fmt: skip


def test_of_a_long_queue_the_first_positions_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived, "MOST_POSITIONS", 2)
    names = [f"r{number}" for number in range(4)]
    trace = trace_of(lifecycle=life(*((0, name, "arrive") for name in names), (5, "r0", "admit")))

    found = queue_positions(trace)

    assert told(trace) == [(0, "r0", 0, 5), (0, "r1", 5, None), (1, "r1", 0, 5), (1, "r2", 5, None)]
    assert found["num_positions"].unique().to_list() == [4]
