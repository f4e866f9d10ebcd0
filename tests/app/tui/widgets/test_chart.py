"""Stacked bars over steps."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult

from stepscope.app.tui.widgets.chart import AXIS_WIDTH, Chart, Layer, per_column
from tests.app.tui.stage import settle, text_of

NAN = float("nan")


class ChartApp(App[None]):
    """A chart alone, twelve bars wide and four lines high."""

    chosen: list[int]

    def compose(self) -> ComposeResult:
        self.chosen = []
        yield Chart("tokens", id="chart")

    def on_chart_chosen(self, event: Chart.Chosen) -> None:
        self.chosen.append(event.index)


async def drawn(*layers: Layer, ceiling: float | None = None, width: int = 12) -> str:
    async with ChartApp().run_test(size=(AXIS_WIDTH + width, 5)) as pilot:
        chart = pilot.app.query_one(Chart)
        chart.show(layers, ceiling)
        await settle(pilot)
        return text_of(chart)


def layer(*values: float, glyph: str = "█") -> Layer:
    return Layer("decode", np.array(values), "#F5B971", glyph)


def test_a_column_shows_all_layers_of_its_highest_step() -> None:
    prefill, decode = [1.0, 0.0, 120.0, 0.0], [3.0, 5.0, 2.0, NAN]

    assert per_column(np.array([decode, prefill]), 2).tolist() == [[5.0, 2.0], [0.0, 120.0]]
    assert per_column(np.array([[1.0, 2.0]]), 4).tolist() == [[1.0, 1.0, 2.0, 2.0]]
    assert per_column(np.array([[1.0, NAN, NAN, NAN]]), 2).tolist() == [[1.0, 0.0]]


@given(st.lists(st.floats(0, 1e9), max_size=50), st.integers(1, 60))
def test_the_highest_step_is_seen_however_narrow_the_chart_is(
    values: list[float], width: int
) -> None:
    columns = per_column(np.array([values]), width)

    assert columns.shape == (1, width if values else 0)
    assert columns.max(initial=0.0) == max(values, default=0.0)


async def test_layers_are_stacked_and_each_is_filled_its_own_way() -> None:
    text = await drawn(layer(2, 2, glyph="▌"), layer(0, 2), ceiling=4)
    rows = [line[AXIS_WIDTH:] for line in text.splitlines()[1:]]
    assert [row[0] for row in rows] == ["▔", " ", "▌", "▌"]
    assert [row[-1] for row in rows] == ["█", "█", "▌", "▌"]


async def test_the_axis_tells_the_ceiling() -> None:
    text = await drawn(layer(1024, 512), ceiling=1024)
    assert text.splitlines()[1].startswith("  1,024")


async def test_a_far_ceiling_is_told_and_not_drawn() -> None:
    text = await drawn(layer(10, 20), ceiling=1000)
    assert "▔" not in "\n".join(text.splitlines()[1:])
    assert text.splitlines()[1].split()[0] == "20"


async def test_unknown_numbers_leave_no_bar() -> None:
    text = await drawn(layer(NAN, NAN))
    assert "█" not in "\n".join(text.splitlines()[1:])


async def test_without_steps_it_says_so() -> None:
    assert "This trace has no steps." in await drawn(layer(), width=30)


async def test_a_click_chooses_the_step_under_it() -> None:
    async with ChartApp().run_test(size=(AXIS_WIDTH + 12, 5)) as pilot:
        chart = pilot.app.query_one(Chart)
        chart.show((layer(*range(6)),))
        for x in (0, AXIS_WIDTH, AXIS_WIDTH + 11):
            await pilot.click("#chart", offset=(x, 2))
        await settle(pilot)
        assert isinstance(pilot.app, ChartApp)
        assert pilot.app.chosen == [0, 5]


async def test_numbers_of_which_none_is_known_are_not_drawn_as_zero() -> None:
    unknown = await drawn(layer(NAN, NAN), width=60)

    assert "This trace does not tell the tokens of its steps." in unknown
    assert "0" not in unknown
    assert "does not tell" not in await drawn(layer(NAN, 0.0), width=60)
