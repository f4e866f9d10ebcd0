"""The drawer's blame: totals, a legend, and bars that add up."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest

from stepscope.analyzers.latency.blame import blame
from stepscope.app import light
from stepscope.app.present.blame_bars import LOOKS, Bars, by_group
from stepscope.app.web.panes.blame import PATTERNS, blame_pane, waterfall
from stepscope.app.web.view import View
from stepscope.engine.workloads.workload import RequestSpec
from stepscope.ingest.trace import Trace
from tests.app.test_light import apart
from tests.app.web.small_traces import loaded_of
from tests.app.web.test_panes import said
from tests.engine.small_engines import serve
from tests.ingest.log_files import SGLANG, open_log
from tests.tiers import slow
from tests.traces import trace_of


def _served(names: list[str]) -> Trace:
    _, rows = serve([RequestSpec(name, at, 4, 3) for at, name in enumerate(names)])
    tables: dict[str, Any] = rows.tables
    return trace_of(**tables)


def test_the_pane_tells_causes_totals_and_how_many_bars_it_draws() -> None:
    told = said(blame_pane(loaded_of(_served(["r0", "r1", "r2"])), View()))

    assert "3 of 3 requests, the slowest" in told
    assert "prefill" in told
    assert "decode" in told


def test_a_run_that_names_no_request_is_not_called_a_request() -> None:
    steps = [
        {"step": 1, "ts_ns": 0, "dur_ns": 10, "kind": "decode", "rank": rank} for rank in (0, 1)
    ]

    told = said(blame_pane(loaded_of(trace_of(steps=steps, ranks=(0, 1))), View()))

    assert "2 of 2 ranks, each whole" in told
    assert "requests" not in told.replace("the trace names no requests", "")


def test_lengths_of_steps_that_a_log_does_not_tell_are_called_inferred(tmp_path: Path) -> None:
    trace = open_log(tmp_path, SGLANG)

    told = said(blame_pane(loaded_of(trace), View()))

    assert "how long 1 step took is inferred: each until the line of the next" in told


def test_the_pieces_of_a_bar_add_up_to_the_latency_and_do_not_overlap() -> None:
    told = blame(_served(["r0", "r1", "r2"]))
    rows = told.requests.to_dicts()

    drawn: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for bar in waterfall(Bars(told), rows).data:
        for at, base, length in zip(bar.y, bar.base, bar.x, strict=True):
            drawn[at].append((base, base + length))
    for at, row in enumerate(rows):
        pieces = sorted(drawn[at])
        assert all(before[1] == after[0] for before, after in pairwise(pieces))
        assert pieces[-1][1] - pieces[0][0] == row["latency_ns"]


def test_no_two_groups_of_causes_look_alike_without_colour() -> None:
    assert PATTERNS.keys() == LOOKS.keys()
    seen = [pattern for pattern in PATTERNS.values() if pattern[0]]
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("is_light", [False, True], ids=["dark", "light"])
def test_groups_of_causes_without_a_pattern_are_told_apart_by_every_eye(is_light: bool) -> None:
    plain = [group for group, (shape, _) in PATTERNS.items() if not shape]
    shown = [light.colour(LOOKS[group].colour, is_light=is_light) for group in plain]

    assert plain == ["prefill", "kernel", "idle"]
    assert min(apart(*two) for two in combinations(shown, 2)) >= 12


@pytest.mark.parametrize("name", ["<b>r</b>", "\x1b[31mr"])
def test_names_out_of_a_trace_are_text_in_the_picture(name: str) -> None:
    told = blame(_served([name]))
    figure = waterfall(Bars(told), told.requests.to_dicts())

    label = figure.layout.yaxis.ticktext[0]
    assert "<" not in label
    assert "\x1b" not in label


def test_a_trace_with_nothing_in_it_says_so() -> None:
    told = said(blame_pane(loaded_of(trace_of(counters=[{"name": "x", "value": 1.0}])), View()))

    assert "there is no latency to explain" in told


def test_only_what_took_time_is_in_a_bar() -> None:
    (row,) = blame(_served(["r0"])).requests.to_dicts()

    assert by_group(row).keys() == {"prefill", "decode"}


@slow
def test_there_is_room_for_the_longest_name_left_of_the_bars() -> None:
    short, long = (
        waterfall(loaded.bars, loaded.blamed.requests.to_dicts())
        for loaded in (loaded_of(_served([name])) for name in ("r", "a-request-of-many-letters"))
    )

    widest = max(map(len, long.layout.yaxis.ticktext))
    assert long.layout.margin.l >= 6 * widest > short.layout.margin.l
