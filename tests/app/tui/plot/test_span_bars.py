"""How spans look in cells."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.palette import (
    AIC,
    AIV,
    DECODE,
    MIX,
    MIXED,
    PREEMPTED,
    PREFILL,
    RECOMPUTE,
    STATES,
    WAITING,
)
from stepscope.app.timeline import SpanView, Viewport
from stepscope.app.tui.cells import Line
from stepscope.app.tui.ink import ACCENT, BACKGROUND, TEXT, ink
from stepscope.app.tui.plot.span_bars import (
    Plot,
    fill_of,
    looks_of,
    outline,
    paint_density,
    paint_signs,
    paint_spans,
    signs_of,
)

PLOT = Plot(0, 40, Viewport(0, 4_000))
REF = ("core_spans", 0)


def painted(*spans: tuple[int, int, int, str], hidden: frozenset[int] = frozenset()) -> str:
    """A line of 40 cells of 100 ns each, with spans of (start, end, state, label)."""
    line = Line(40, ink(TEXT, BACKGROUND))
    views = [SpanView(0, start, end, state, label, REF) for start, end, state, label in spans]
    paint_spans(line, PLOT, views, hidden, BACKGROUND)
    return line.strip().text.rstrip()


def test_a_bar_carries_its_label() -> None:
    assert painted((0, 1_200, MIX, "qk_pv 7/8")) == "▓qk_pv 7/8▓▓"


def test_a_label_that_does_not_fit_is_cut_or_left_out() -> None:
    assert painted((0, 600, MIX, "qk_pv 7/8")) == "qk_pv…"
    assert painted((0, 300, MIX, "qk_pv 7/8")) == "▓▓▓"


def test_where_the_tokens_do_not_fit_the_letter_stays() -> None:
    assert painted((0, 800, PREFILL, "P 512")) == "█P 512██"
    assert painted((0, 400, PREFILL, "P 512")) == "█P██"


def test_every_state_has_a_fill_of_its_own() -> None:
    fills = [
        fill_of(STATES[state]) for state in (PREFILL, DECODE, MIXED, RECOMPUTE, WAITING, PREEMPTED)
    ]
    assert len(set(fills)) == len(fills)
    assert len({fill_of(STATES[state]) for state in (AIC, AIV, MIX)}) == 3


def test_decode_is_ticks_and_labelled_once_in_a_run() -> None:
    decodes = [(at, at + 300, DECODE, "D") for at in (0, 300, 600)]
    assert painted(*decodes) == "D▌▌▌▌▌▌▌▌"


def test_a_preemption_is_a_mark_and_waiting_is_hollow() -> None:
    spans = ((0, 300, PREEMPTED, "preempted"), (300, 600, WAITING, "waiting"))
    assert painted(*spans) == "▼┄┄┄┄┄"


def test_bars_begin_and_end_within_a_cell() -> None:
    assert painted((50, 1_275, AIC, "")) == "▌███████████▊"


def test_bars_that_touch_show_where() -> None:
    assert painted((0, 500, AIC, "up"), (500, 1_000, AIC, "down")) == "█up██▏down"


def test_spans_narrower_than_a_cell_are_left_to_the_density() -> None:
    assert painted((0, 90, AIC, "up")) == ""


def test_hidden_states_are_not_drawn() -> None:
    assert painted((0, 900, AIC, "up"), hidden=frozenset({AIC})) == ""


def test_density_is_as_high_as_the_cell_is_busy() -> None:
    line = Line(4, ink(TEXT, BACKGROUND))
    states = np.array([AIC, AIC, 0, AIV], np.uint8)
    density = np.array([1, 128, 0, 255], np.uint8)
    paint_density(line, Plot(0, 4, Viewport(0, 400)), looks_of(states, density), BACKGROUND)
    assert line.strip().text == "▁▅ ░"


def test_the_selection_is_bracketed_and_a_small_one_inverted() -> None:
    line = Line(40, ink(TEXT, BACKGROUND))
    outline(line, PLOT, 0, 1_000, ink(ACCENT, BACKGROUND))
    outline(line, PLOT, 2_000, 2_001, ink(ACCENT, BACKGROUND))
    assert line.strip().text.rstrip() == "▐        ▌"
    assert line.style(20) == ink(BACKGROUND, ACCENT, bold=True)


SPAN = st.tuples(
    st.integers(-5_000, 9_000), st.integers(0, 6_000), st.integers(1, len(STATES) - 1), st.text()
)


@given(st.lists(SPAN, max_size=12))
def test_whatever_the_spans_the_line_stays_in_its_cells(
    spans: list[tuple[int, int, int, str]],
) -> None:
    line = Line(44, ink(TEXT, BACKGROUND))
    views = [
        SpanView(0, start, start + length, state, label, REF)
        for start, length, state, label in spans
    ]
    plot = Plot(2, 40, Viewport(0, 4_000))
    paint_spans(line, plot, views, (), BACKGROUND)
    for view in views:
        outline(line, plot, view.start_ns, view.end_ns, ink(ACCENT, BACKGROUND))
    assert line.strip().text[:2] == "  "
    assert line.strip().cell_length == 44


@given(st.integers(0, 3_999))
def test_a_cell_shows_the_time_that_falls_in_it(ts_ns: int) -> None:
    assert abs(PLOT.time(PLOT.cell(ts_ns)) - ts_ns) <= 50


def test_a_moment_has_a_sign_where_it_stands_apart() -> None:
    assert painted((300, 300, WAITING, ""), (900, 900, MIX, "")) == "   ◆     ◆"


def test_a_moment_at_the_edge_of_what_takes_time_has_none() -> None:
    assert painted((300, 300, WAITING, ""), (300, 800, PREFILL, "")) == "   █████"
    assert painted((0, 300, PREFILL, ""), (300, 300, WAITING, "")) == "███"


def test_a_moment_of_a_hidden_state_is_not_drawn() -> None:
    assert painted((300, 300, WAITING, ""), hidden=frozenset({WAITING})) == ""


def test_of_many_spans_a_preemption_has_its_mark_where_it_begins_as_well() -> None:
    line = Line(8, ink(TEXT, BACKGROUND))
    states = np.array([PREFILL, PREEMPTED, PREEMPTED, PREEMPTED, 0, PREEMPTED, 0, 0], np.uint8)
    busy = np.array([255, 255, 255, 90, 0, 9, 0, 0], np.uint8)
    plot, marks = Plot(0, 8, Viewport(0, 800)), np.where(states == PREEMPTED, states, 0)
    paint_density(line, plot, looks_of(states, busy), BACKGROUND)
    paint_signs(line, plot, signs_of(states, marks.astype(np.uint8)), BACKGROUND)

    assert line.strip().text == "█▼┄┄ ▼  "


def test_a_mark_has_its_sign_in_each_cell_that_another_state_fills() -> None:
    line = Line(8, ink(TEXT, BACKGROUND))
    states = np.array([DECODE, DECODE, MIXED, MIXED, MIXED, DECODE, DECODE, DECODE], np.uint8)
    marks = np.array([MIXED, 0, MIXED, MIXED, MIXED, MIXED, 0, PREEMPTED], np.uint8)
    plot, looks = Plot(0, 8, Viewport(0, 800)), looks_of(states, np.full(8, 255, np.uint8))
    paint_density(line, plot, looks, BACKGROUND)
    paint_signs(line, plot, signs_of(states, marks), BACKGROUND)

    assert line.strip().text == "M▌M▀▀M▌▼"


def test_a_mixed_bar_is_split_by_tokens_an_eighth_of_its_height_at_least() -> None:
    line = Line(40, ink(TEXT, BACKGROUND))
    span = SpanView(0, 0, 900, MIXED, "without room to write", REF, (0.0, 2047 / 2048, 1 / 2048))
    paint_spans(line, PLOT, [span], (), BACKGROUND)

    assert line.strip().text.rstrip() == "▁M▁▁▁▁▁▁▁"


def test_a_short_preemption_has_its_sign_among_few_spans() -> None:
    spans = [(0, 1_010, DECODE, ""), (1_010, 1_030, PREEMPTED, ""), (1_030, 2_000, DECODE, "")]

    assert painted(*spans) == "▌▌▌▌▌▌▌▌▌▌▼▌▌▌▌▌▌▌▌▌"
