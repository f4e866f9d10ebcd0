"""Where rows of an answer lead: only to what the trace has."""

from __future__ import annotations

from typing import Any

from stepscope.app.present.blocks import AtFinding, AtRequest, AtStep, AtTime, Target
from stepscope.app.queries.row_leads import Leads
from tests.app.web.small_traces import US, conflict_trace, loaded_of

LOADED = loaded_of(conflict_trace())
LEADS = Leads(LOADED.timeline, LOADED.composition, LOADED.found.findings)
CORE = LOADED.timeline.lane_of_core(0, 2)


def test_a_row_leads_to_the_most_exact_place_that_it_names() -> None:
    leads: list[tuple[dict[str, Any], Target]] = [
        ({"step": 3}, AtStep(3)),
        ({"request": "req-1"}, AtRequest(0, "req-1")),
        ({"ts_ns": 210 * US, "step": 2}, AtTime(210 * US)),
        ({"core": 2, "ts_ns": 212 * US, "rank": 0}, AtTime(212 * US, CORE)),
        ({"core": 2}, AtTime(205 * US, CORE)),
        ({"finding": "COR001.1", "step": 2}, AtFinding(0)),
    ]

    assert next(iter(LOADED.findings)) == "COR001.1"
    assert [(row, LEADS.row(row)) for row, _ in leads] == leads


def test_what_the_trace_does_not_have_leads_nowhere() -> None:
    rows: tuple[dict[str, Any], ...] = (
        {"step": 99}, {"step": True}, {"step": None}, {"request": "nobody"}, {"request": 4},
        {"ts_ns": 10**15}, {"ts_ns": -1}, {"ts_ns": 1.5}, {"core": 99}, {"finding": "COR001.9"},
        {"kind": "decode"}, {},
    )  # fmt: skip

    assert [(row, LEADS.of(row)) for row in rows if LEADS.of(row)] == []


def test_every_cell_that_names_a_place_has_its_own() -> None:
    row = {"rank": 0, "step": 2, "ts_ns": 210 * US, "request": "req-2", "num_tokens": 4}

    assert set(LEADS.of(row)) == {"step", "ts_ns", "request"}
