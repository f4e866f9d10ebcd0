"""From an address to what is shown: jumps, ranges, and what a trace does not have."""

from __future__ import annotations

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.timeline.moves import MOVES
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.resolve import resolve
from tests.app.web.small_traces import NUM_STEPS, STEP_NS, US, conflict_trace, loaded_of
from tests.traces import trace_of


@cache
def small() -> LoadedTrace:
    return loaded_of(conflict_trace())


def test_without_a_range_the_whole_trace_is_shown() -> None:
    assert resolve(small(), "").t == (0, NUM_STEPS * STEP_NS)


def test_a_finding_brings_its_range_its_lane_and_its_step() -> None:
    loaded = small()

    resolved = resolve(loaded, "?finding=COR001.1")

    lane = loaded.timeline.lanes[resolved.view.sel[0]] if resolved.view.sel else None
    assert lane
    assert (lane.group, lane.label) == ("group 0", "AIV1")
    assert resolved.t[0] < 210 * US < resolved.t[1] < 300 * US
    assert resolved.view.step == 2
    assert resolved.span
    assert resolved.span.label == "push 31/32"


def test_a_range_in_the_address_stands_against_that_of_the_finding() -> None:
    assert resolve(small(), "?finding=COR001.1&t=0..1000").t == (0, 1000)


def test_next_finding_goes_round() -> None:
    loaded = small()
    keys = list(loaded.findings)
    address, visited = "", []

    for _ in range(len(keys) + 1):
        address = resolve(loaded, f"{address}&go=next-finding").view.spell()
        visited.append(resolve(loaded, address).view.finding)

    assert visited == [*keys, keys[0]]


def test_previous_finding_from_the_start_is_the_last() -> None:
    loaded = small()

    assert resolve(loaded, "?go=previous-finding").view.finding == list(loaded.findings)[-1]


def test_steps_go_forward_and_back_and_stop_at_the_ends() -> None:
    loaded = small()

    assert resolve(loaded, "?step=1&go=next-step").view.step == 2
    assert resolve(loaded, "?step=1&go=previous-step").view.step == 0
    assert resolve(loaded, "?step=0&go=previous-step").view.step == 0
    assert resolve(loaded, f"?step={NUM_STEPS - 1}&go=next-step").view.step == NUM_STEPS - 1


def test_a_step_out_of_sight_is_brought_into_the_middle_at_the_same_zoom() -> None:
    t = resolve(small(), f"?step=2&t=200000..{200000 + STEP_NS // 2}&go=next-step").t

    assert t[1] - t[0] == STEP_NS // 2
    assert t[0] < 3 * STEP_NS < t[1]


def test_spans_of_a_lane_are_walked_in_order() -> None:
    loaded = small()
    first = resolve(loaded, "?finding=COR001.1&go=next-span")

    assert first.span
    assert first.span.label == "qk_pv 7/8"
    back = resolve(loaded, f"{first.view.spell()}&go=previous-span")
    assert back.span
    assert back.span.label == "push 31/32"


def test_at_the_last_span_next_stays() -> None:
    loaded = small()
    address = "?sel=0@550000"

    assert resolve(loaded, f"{address}&go=next-span").view.sel == resolve(loaded, address).view.sel


def test_what_the_trace_does_not_have_is_left_out() -> None:
    view = resolve(
        small(),
        "?finding=COR001.99&step=77&sel=9999@1&pin=0,9999&hide=decode,nonsense&collapse=steps,nowhere",
    ).view

    assert (view.finding, view.step, view.sel) == (None, None, None)
    assert (view.pin, view.hide, view.collapse) == ((0,), ("decode",), ("steps",))


def test_a_range_beyond_the_trace_is_cut_or_left_out() -> None:
    loaded = small()

    assert resolve(loaded, "?t=100..99000000").t == (100, loaded.length)
    assert resolve(loaded, "?t=99000000..99000001").t == (0, loaded.length)


@given(
    st.sampled_from(["", *MOVES]),
    st.dictionaries(st.sampled_from(["t", "sel", "finding", "step", "mark", "pin"]), st.text()),
)
def test_any_address_leads_to_a_range_within_the_trace(verb: str, given: dict[str, str]) -> None:
    loaded = small()
    query = "&".join([f"go={verb}", *(f"{name}={text}" for name, text in given.items())])

    resolved = resolve(loaded, query)

    assert 0 <= resolved.t[0] < resolved.t[1] <= loaded.length
    assert resolve(loaded, resolved.view.spell()) == resolved


def test_in_an_empty_trace_every_jump_stays() -> None:
    loaded = loaded_of(trace_of())
    address = "?sel=0@0&finding=COR001.1&step=1&go="

    arrived = {verb: resolve(loaded, address + verb) for verb in MOVES}

    assert {verb: (to.view.sel, to.t) for verb, to in arrived.items()} == dict.fromkeys(
        MOVES, (None, (0, loaded.length))
    )


def test_an_address_spells_what_is_collapsed_otherwise_than_at_first() -> None:
    python = {"track": "CPU / thread 1", "category": "python_function", "name": "main", "dur_ns": 9}
    loaded = loaded_of(
        trace_of(spans=[python, {**python, "category": "cpu_op", "name": "aten::mm"}])
    )

    at_first, expanded = resolve(loaded, ""), resolve(loaded, "?collapse=Python,CPU%20threads")

    assert at_first.as_props(loaded)["collapse"] == ["Python"]
    assert "collapse" not in at_first.view.spell()
    assert expanded.as_props(loaded)["collapse"] == ["CPU threads"]
    assert expanded.view.collapse == ("CPU threads", "Python")
