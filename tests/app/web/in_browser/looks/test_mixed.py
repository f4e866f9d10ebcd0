"""A mixed step and a preemption are seen on the page at every zoom."""

from __future__ import annotations

import pytest

from stepscope.app.palette import DECODE, MIXED, PREEMPTED, PREFILL, STATES
from stepscope.app.timeline import Timeline
from tests.app.timeline.drawn_lanes import of_many_steps
from tests.app.web.in_browser.hands import Open, colours_in

pytestmark = pytest.mark.web


def test_one_of_thousands_has_its_sign_and_a_mixed_step_alone_both_its_parts(visit: Open) -> None:
    trace = of_many_steps()
    request = Timeline.of(trace).lane_of_request(0, "a")
    assert request is not None
    shown = visit(trace)

    whole = shown.go()
    assert STATES[MIXED].colour in colours_in(whole, 0)
    assert STATES[PREEMPTED].colour in colours_in(whole, request)

    near = shown.go("?t=12340..12350")
    assert {STATES[PREFILL].colour, STATES[DECODE].colour} <= {*colours_in(near, 0)}

    hidden = shown.go("?hide=mixed")
    assert STATES[MIXED].colour not in colours_in(hidden, 0)
