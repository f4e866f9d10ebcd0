"""The overview of the page fits what there is, and draws what the summary has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.summary.slo import slo_of
from stepscope.app.present.summary.parts import Histogram, TimeLines
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.panes.overview import overview_pane
from stepscope.app.web.panes.summary_charts import figure_of
from stepscope.app.web.view import View
from stepscope.ingest.trace import Trace
from tests.analyzers.summary.every_trace import opened
from tests.analyzers.summary.test_gpu_use import kernel
from tests.tiers import slow
from tests.traces import trace_of


def loaded(trace: Trace, slo: str | None = None) -> LoadedTrace:
    nothing = CheckResult(trace.name, (), {}, {}, ())
    return LoadedTrace(trace, nothing, slo_of(slo) if slo else None)


def test_a_profile_shows_its_gpu_and_no_empty_chart_of_batches() -> None:
    shown = str(overview_pane(loaded(trace_of(spans=[kernel("gemm", 0, 9)])), View()))

    assert "top kernels and copies" in shown
    assert "composition" not in shown


@slow
def test_one_step_has_no_chart_over_time() -> None:
    steps = [{"step": at, "kind": "decode", "num_decode_tokens": 4} for at in range(2)]

    alone, both = (
        str(overview_pane(loaded(trace_of(steps=some)), View())) for some in (steps[:1], steps)
    )

    assert "composition" not in alone
    assert "composition" in both


def test_a_run_shows_batches_above_and_charts_within_the_summary() -> None:
    trace = opened("sample_traces/fcfs-preemption-after.trace")

    shown = overview_pane(loaded(trace, "ttft=2s"), View())

    assert str(shown).count("Graph(") == 1 + 7
    assert "composition" in str(shown)


@pytest.fixture(scope="module")
def charts() -> list[Any]:
    trace = opened("sample_traces/fcfs-preemption-after.trace")
    return [c for p in loaded(trace, "ttft=2s").summary.parts for c in p.charts]


def test_every_bar_of_a_histogram_is_a_count_and_those_beyond_the_limit_are_hatched(
    charts: list[Any],
) -> None:
    ttft = next(each for each in charts if isinstance(each, Histogram) and each.title == "TTFT")

    (bars,) = figure_of(ttft, 0).data

    assert bars.y.tolist() == ttft.of.counts.tolist()
    beyond = (ttft.of.edges[:-1] > 2 * 10**9).tolist()
    assert [bool(shape) for shape in bars.marker.pattern.shape] == beyond
    assert any(beyond)


def test_a_line_over_time_has_every_value_at_its_time(charts: list[Any]) -> None:
    waiting = next(each for each in charts if isinstance(each, TimeLines))

    (line,) = figure_of(waiting, 0).data

    assert np.array_equal(line.y, waiting.lines[0].values)
    assert np.allclose(np.asarray(line.x) * 1e9, waiting.lines[0].ts_ns)


def test_charts_along_time_show_what_the_timeline_shows(charts: list[Any]) -> None:
    waiting = next(each for each in charts if isinstance(each, TimeLines))
    (line,) = waiting.lines
    origin = int(line.ts_ns[0])
    t0, t1 = 2_000_000_000, 5_500_000_001

    shown = figure_of(waiting, origin, (t0, t1))
    (drawn,) = shown.data

    assert shown.layout.xaxis.range == (t0 / 1e9, t1 / 1e9)
    assert (drawn.x[0], drawn.x[-1]) == (t0 / 1e9, t1 / 1e9)
    for at_ns in range(t0, t1, 100_000_000):
        held = line.values[np.searchsorted(line.ts_ns, origin + at_ns, "right") - 1]
        assert drawn.y[np.searchsorted(drawn.x, at_ns / 1e9, "right") - 1] == held
    assert "from 2.00 s to 5.50 s" in shown.layout.annotations[0].text


def test_of_a_window_in_which_nothing_is_told_yet_nothing_is_drawn(charts: list[Any]) -> None:
    waiting = next(each for each in charts if isinstance(each, TimeLines))
    origin = int(waiting.lines[0].ts_ns[0]) - 1_000_000_000

    (drawn,) = figure_of(waiting, origin, (0, 500)).data
    assert len(drawn.x) == 0


@slow
def test_the_overview_draws_the_range_of_the_address_and_the_whole_without_one() -> None:
    of = loaded(opened("sample_traces/fcfs-preemption-after.trace"))

    assert "from 1.0" in str(overview_pane(of, View(t=(1_000_000_000, 2_000_000_000))))
    assert "from 0.0" not in str(overview_pane(of, View(t=(0, of.length))))
