"""Positions for all events at once are those of applying the events one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.ingest.derive import queue_positions as derived
from stepscope.ingest.derive import two_ended_queue
from stepscope.ingest.derive.queue_positions import queue_positions
from stepscope.ingest.derive.two_ended_queue import AT_END, QueueEvents, positions_of
from tests.traces import trace_of

Event = tuple[bool, int, int, int]
Stay = tuple[int, int, int]
EVENTS = st.lists(
    st.tuples(
        st.booleans(), st.integers(0, 5), st.sampled_from([AT_END, AT_END, 0, 9]),
        st.integers(0, 2),
    ),
    max_size=40,
)  # fmt: skip
"""Whether a request enters, which, at which index, and how much later it is."""
LIVES = st.lists(
    st.fixed_dictionaries(
        {
            "request": st.sampled_from("abcd"),
            "event": st.sampled_from(["arrive", "admit", "preempt", "resume", "abort", "defer"]),
            "queue_index": st.sampled_from([None, None, 0, -1, 9]), "late": st.integers(0, 2),
        }
    ),
    max_size=30,
)  # fmt: skip


def events_of(rows: list[Event]) -> QueueEvents:
    is_entry, request, index, late = zip(*rows, strict=True) if rows else ((),) * 4
    times = np.cumsum(np.array(late, np.int64))
    return QueueEvents(
        np.array(is_entry, np.bool_), np.array(request, np.int64), np.array(index, np.int64),
        np.unique(times, return_inverse=True)[1].astype(np.int64),
    )  # fmt: skip


def applied(events: QueueEvents) -> tuple[int, list[list[Stay]]]:
    """The longest queue, and who was at each position: from moment to moment, and its event."""
    queue: list[tuple[int, int]] = []
    lines: list[list[tuple[int, int]]] = []
    for at, request in enumerate(events.request.tolist()):
        queue = [each for each in queue if each[0] != request]
        if events.is_entry[at]:
            queue.insert(int(events.index[at]), (request, at))
        if at + 1 == len(events.request) or events.moment[at + 1] != events.moment[at]:
            lines.append(list(queue))
    longest = max(map(len, lines), default=0)
    return longest, [joined([line[p] if p < len(line) else None for line in lines])
                     for p in range(longest)]  # fmt: skip


def joined(line: list[tuple[int, int] | None]) -> list[Stay]:
    stays: list[Stay] = []
    for moment, there in enumerate(line):
        before = line[moment - 1] if moment else None
        if there and before and there[0] == before[0]:
            stays[-1] = (stays[-1][0], moment + 1, stays[-1][2])
        elif there:
            stays.append((moment, moment + 1, there[1]))
    return stays


@pytest.fixture(params=[1 << 22, 3], ids=["all moments at once", "some moments at once"])
def cells_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(two_ended_queue, "CELLS_AT_ONCE", request.param)


@pytest.mark.usefixtures("cells_at_once")
@given(EVENTS)
def test_who_is_at_each_position_is_what_applying_every_event_gives(rows: list[Event]) -> None:
    events = events_of(rows)

    found = positions_of(events, 99)

    assert found is not None
    stays = [
        [*zip(each.first.tolist(), each.last.tolist(), each.event.tolist(), strict=True)]
        for each in found.stays
    ]
    assert (found.longest, stays) == applied(events)


def test_a_request_that_enters_in_the_middle_is_left_to_applying_every_event() -> None:
    first_three = [(True, number, AT_END, 1) for number in range(3)]

    assert positions_of(events_of([*first_three, (True, 3, 1, 1)]), 9) is None


@settings(max_examples=12)
@given(LIVES, st.sampled_from([1, 2, 99]))
def test_positions_are_row_by_row_those_of_following_every_event(
    lives: list[dict[str, Any]], most: int
) -> None:
    times = np.cumsum([life.pop("late") for life in lives], dtype=np.int64).tolist()
    rows = [{**life, "ts_ns": ts_ns} for life, ts_ns in zip(lives, times, strict=True)]
    trace = trace_of(lifecycle=[*rows, {"ts_ns": 99, "request": "z", "event": "admit"}])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(derived, "MOST_POSITIONS", most)
        at_once = queue_positions(trace)
        patch.setattr(derived, "positions_of", lambda *_: None)

        assert at_once.rows() == queue_positions(trace).rows()
