"""A request's pane of the page: what it says, and where its links lead."""

from __future__ import annotations

from dataclasses import replace

from stepscope.app.present.inspected.request_page import NO_REQUESTS
from stepscope.app.web.panes.request import request_pane
from stepscope.app.web.panes.step import step_pane
from stepscope.app.web.panes.table import table_pane
from stepscope.app.web.view import View
from tests.analyzers.rows import event
from tests.app.web.small_traces import HOSTILE, conflict_trace, loaded_of
from tests.app.web.test_panes import said
from tests.traces import trace_of


def test_the_request_that_the_address_names_is_told_in_full() -> None:
    shown = str(request_pane(loaded_of(conflict_trace()), View(request="req-1", rank=0)))

    assert "request req-1" in shown
    assert "its life" in shown
    assert "show it on the timeline" in shown


def test_without_one_it_is_that_of_the_lane_that_is_selected() -> None:
    loaded = loaded_of(conflict_trace())
    lane = loaded.timeline.lane_of_request(0, "req-2")
    assert lane is not None

    assert "request req-2" in str(request_pane(loaded, View(sel=(lane, 0))))


def test_without_any_there_are_links_to_all() -> None:
    shown = str(request_pane(loaded_of(conflict_trace()), View()))

    assert shown.count("request=req-") == 3


def test_a_trace_without_requests_says_so() -> None:
    steps = [{"step": 1, "ts_ns": 0, "dur_ns": 5, "kind": "decode"}]

    assert NO_REQUESTS in str(request_pane(loaded_of(trace_of(steps=steps)), View()))


def test_one_that_is_not_there_is_said_not_to_be() -> None:
    shown = str(request_pane(loaded_of(conflict_trace()), View(request="nobody")))

    assert "no such request" in shown


def test_a_batch_and_the_rows_of_a_table_lead_to_their_requests() -> None:
    loaded = loaded_of(conflict_trace())

    batch = str(step_pane(loaded, View(step=2)))
    rows = str(table_pane(loaded, View(table="batch_rows")))

    assert "tab=request&rank=0&request=req-1" in batch
    assert "tab=request&rank=0&request=req-1" in rows


def test_the_address_of_a_request_is_read_as_it_is_spelled() -> None:
    view = View(tab="request", request=HOSTILE, rank=3)

    assert View.parse(view.spell()) == view
    assert replace(View.parse("?rank=-1&request="), tab="findings") == View()


def test_without_one_all_are_offered_in_the_order_of_their_numbers_and_the_first_is_told() -> None:
    names = ["req-10", "req-9", "req-2", f"req-{'7' * 5000}"]
    served = ("arrive", "first-token", "finish")
    rows = [event(name, what, 10 * at) for name in names for at, what in enumerate(served)]
    loaded = loaded_of(trace_of(lifecycle=rows))

    told = said(request_pane(loaded, View()))

    assert told.startswith("4 requests: choose one, or click its lane req-2 req-9 req-10 req-777")
    first = loaded.blamed.requests["request"][0]
    assert f"request {first}" in told
