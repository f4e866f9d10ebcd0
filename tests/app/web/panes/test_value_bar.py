"""A value over the run on the step's pane: its line, what it is here, and what is wrong with it."""

from __future__ import annotations

from functools import cache
from typing import Any
from urllib.parse import quote

from dash import dcc
from dash.development.base_component import Component

from stepscope.app.web import figures
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.panes.step import step_pane
from stepscope.app.web.resolve import resolve
from tests.app.web.small_traces import HOSTILE, NUM_STEPS, STEP_NS, conflict_trace, loaded_of
from tests.app.web.test_panes import said
from tests.traces import trace_of


@cache
def small() -> LoadedTrace:
    return loaded_of(conflict_trace())


def pane(words: str, loaded: LoadedTrace | None = None, rest: str = "&step=3") -> Component:
    loaded = loaded or small()
    return step_pane(loaded, resolve(loaded, f"?tab=step&value={quote(words)}{rest}").view)


def charts(part: Any) -> list[Any]:
    if isinstance(part, dcc.Graph):
        return [part]
    children = getattr(part, "children", part)
    return (
        [each for child in children for each in charts(child)] if isinstance(children, list) else []
    )


def test_a_value_is_drawn_over_the_run_with_a_line_where_one_stands() -> None:
    shown = pane("kv_blocks_free")
    (chart,) = charts(shown)
    (line,) = chart.figure.data

    assert "min 15 max 20 here 17" in said(shown)
    assert list(line.y) == [20, 19, 18, 17, 16, 15, 15], "the last one holds up to the end"
    assert list(line.x) == [step * STEP_NS for step in range(NUM_STEPS + 1)]
    assert chart.figure.layout.shapes[0].x0 == 3 * STEP_NS


def test_a_point_leads_to_its_step_and_without_one_to_its_time() -> None:
    (of_steps,) = charts(pane("num_running"))
    (of_counters,) = charts(pane("counters: value"))

    assert of_steps.figure.data[0].customdata[2] == "step=2"
    assert of_counters.figure.data[0].customdata[2] == f"ts={2 * STEP_NS}"


def test_of_many_rows_the_most_of_each_part_is_drawn() -> None:
    num_steps = 3 * figures.POINTS
    steps = [
        {"step": at, "ts_ns": at, "kind": "decode", "num_running": at % 3}
        for at in range(num_steps)
    ]
    (chart,) = charts(pane("num_running", loaded_of(trace_of(steps=steps))))

    assert set(chart.figure.data[0].y) == {2}
    assert len(chart.figure.data[0].y) == figures.POINTS + 1


def test_what_is_wrong_with_a_value_is_one_line_below_it() -> None:
    wrong = {
        "num_wating": "did you mean num_waiting",
        "gpu_busy_ns": "not recorded: gpu_busy_ns is null throughout",
        "kind": "does not run",
        "passwords: a": "no table",
        "steps:": "value needs an expression",
        "lpad(kind, 10000000000)": "is not allowed",
        HOSTILE: "does not run",
        "1" * 501: "500 at most",
    }

    panes = {words: pane(words) for words in wrong}

    assert [words for words, says in wrong.items() if says not in said(panes[words])] == []
    assert [words for words, shown in panes.items() if charts(shown)] == []


def test_a_trace_without_steps_has_values_too() -> None:
    counters = [{"ts_ns": at, "name": "heat", "value": at / 2} for at in range(4)]

    shown = pane("value counters: value", loaded_of(trace_of(counters=counters)), rest="&ts=2")

    assert "min 0 max 1.5 here 1" in said(shown)
