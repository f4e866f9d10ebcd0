"""The runs of a sweep as a page of charts, in one file that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from math import ceil
from pathlib import Path
from typing import Any

from plotly import graph_objects as go
from plotly.io import to_html
from plotly.subplots import make_subplots

from stepscope.app.palette import (
    BACKGROUND,
    BORDER,
    DECODE,
    MIX,
    MUTED,
    PANEL,
    PREFILL,
    RECOMPUTE,
    STATES,
    TEXT,
)
from stepscope.app.present.diff_text import amount
from stepscope.app.printable import plain
from stepscope.app.replay.sweep import Axis, Point
from stepscope.app.replay.sweep_table import FOUND, MEASURES
from stepscope.ingest.errors import WriteError

COLUMNS = 3
LINES = [STATES[each].colour for each in (PREFILL, DECODE, RECOMPUTE, MIX)]
DASHES = ("solid", "dash", "dot", "dashdot")
RECORDED = {"color": MUTED, "dash": "dash", "width": 1}
SECONDS = 1e9
Numbers = list[float | None]


def write_page(points: Sequence[Point], axes: Sequence[Axis], title: str, path: Path) -> None:
    """Write the charts of a sweep to `path`; WriteError where that is not possible."""
    figure = charts(points, axes, title)
    page = to_html(figure, include_plotlyjs=True, config={"displaylogo": False, "responsive": True})
    style = f"<style>body{{margin:0;background:{BACKGROUND}}}</style>"
    head = f"<head><title>{escape(plain(title))}</title>{style}"
    try:
        path.write_text(page.replace("<head>", head, 1), encoding="utf-8")
    except OSError as error:
        raise WriteError(error.strerror or str(error), where=str(path)) from None


def charts(points: Sequence[Point], axes: Sequence[Axis], title: str) -> go.Figure:
    """A chart for each measure over the first setting, a line for each choice of the others.

    A dashed level is the recorded run; a run that was refused leaves a gap.
    """
    labels = [*(each.label for each in MEASURES), *(f"{name}s" for name in FOUND)]
    figure = make_subplots(rows=ceil(len(labels) / COLUMNS), cols=COLUMNS, subplot_titles=labels,
                           vertical_spacing=0.09, horizontal_spacing=0.07)  # fmt: skip
    recorded, runs = points[0], points[1:]
    for number, (values, texts) in enumerate(zip(_values(runs), _texts(runs), strict=True)):
        row, column = number // COLUMNS + 1, number % COLUMNS + 1
        _draw(figure, runs, axes, values, texts, row, column)
        if (level := _of(recorded)[number]) is not None:
            figure.add_hline(level, row=row, col=column, line=RECORDED)
        if number < len(MEASURES) and MEASURES[number].total.endswith("_ns"):
            figure.update_yaxes(ticksuffix=" s", row=row, col=column)
    figure.add_scatter(x=[None], y=[None], mode="lines", line=RECORDED, name="as recorded")
    _dress(figure, title, axes)
    return figure


def _draw(
    figure: go.Figure, runs: Sequence[Point], axes: Sequence[Axis], values: Numbers,
    texts: Sequence[str], row: int, column: int,
) -> None:  # fmt: skip
    first = axes[0][0]
    all_runs = sorted(range(len(runs)), key=lambda at: _others(runs[at], first))
    for place, (others, group) in enumerate(
        groupby(all_runs, key=lambda at: _others(runs[at], first))
    ):
        those = sorted(group)
        figure.add_scatter(
            x=[_number(runs[at].settings[first]) for at in those],
            y=[values[at] for at in those],
            text=[texts[at] for at in those],
            name=escape(plain(others)) or "run again",
            legendgroup=str(place),
            showlegend=(row, column) == (1, 1),
            mode="lines+markers",
            line={
                "color": LINES[place % len(LINES)],
                "dash": DASHES[place // len(LINES) % len(DASHES)],
            },
            hovertemplate="%{x}: %{text}<extra>%{fullData.name}</extra>",
            row=row,
            col=column,
        )


def _dress(figure: go.Figure, title: str, axes: Sequence[Axis]) -> None:
    first = axes[0][0]
    lines = {"gridcolor": BORDER, "zerolinecolor": BORDER, "linecolor": BORDER}
    figure.update_xaxes(**lines, title={"text": escape(plain(first)), "font": {"size": 11}})
    figure.update_yaxes(**lines, rangemode="tozero")
    figure.update_annotations(font={"size": 13, "color": TEXT})
    figure.update_layout(
        title={"text": escape(plain(title)), "font": {"size": 18, "color": TEXT}},
        height=260 * ceil((len(MEASURES) + len(FOUND)) / COLUMNS) + 120,
        paper_bgcolor=BACKGROUND, plot_bgcolor=PANEL, font={"color": MUTED},
        margin={"t": 96, "b": 40}, showlegend=True,
        legend={"orientation": "h", "y": 1, "yanchor": "top", "yref": "container", "x": 0.33},
    )  # fmt: skip


def _values(runs: Sequence[Point]) -> Iterator[Numbers]:
    yield from (list(each) for each in zip(*map(_of, runs), strict=True))


def _of(point: Point) -> Numbers:
    """What is drawn of a run, in seconds where it is a time; None where it is not known."""
    shown: list[Any] = [_scaled(each.total, point.totals.get(each.total)) for each in MEASURES]
    return [*shown, *(point.loud.get(name) for name in FOUND)]


def _scaled(name: str, number: float | None) -> float | None:
    return number / SECONDS if number is not None and name.endswith("_ns") else number


def _texts(runs: Sequence[Point]) -> Iterator[list[str]]:
    for each in MEASURES:
        yield [amount(each.total, run.totals.get(each.total)) for run in runs]
    for name in FOUND:
        yield [str(run.loud.get(name, "-")) for run in runs]


def _others(run: Point, first: str) -> str:
    return ", ".join(f"{name}={value}" for name, value in run.settings.items() if name != first)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return escape(plain(text))
