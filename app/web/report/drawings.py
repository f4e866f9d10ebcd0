"""The charts of a report, as SVG: load and batches over the run, and a bar for each request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from stepscope.app.palette import (
    COUNTER,
    DECODE,
    MIXED,
    MUTED,
    PREFILL,
    RECOMPUTE,
    STATES,
    TEXT,
    WAITING,
)
from stepscope.app.present.blame_bars import LOOKS, Bars, by_group
from stepscope.app.present.blame_tables import WIDEST_NAME, row_name
from stepscope.app.timeline import Composition, LoadOverTime
from stepscope.app.units import count, moment, of_one_trace, stated
from stepscope.app.web.report.markup import text

Floats = npt.NDArray[np.float64]

WIDE, NAMES, BAR, ROW = 1000, 190, 14, 19
"""Pixels: width of a chart and of the names beside it, height of a bar and of its row."""
CHART, GAP = 84, 30
CELLS = 500
POINTS = 500
"""Points of a line; of more steps each is the mean of neighbours."""


def load(of: LoadOverTime) -> str:
    """How busy the engine was over the whole run, stacked by state, over the window's strip."""
    num_pixels = of.shares.shape[1]
    most = float(of.shares.sum(axis=0).max(initial=0.01)) or 0.01
    base = np.zeros(num_pixels)
    paths = []
    for state, shares in zip(of.states, of.shares, strict=True):
        top = base + shares
        paths.append(_area(base / most, top / most, STATES[state].colour, 100))
        base = top
    mixed = STATES[MIXED].colour
    for first, last in _runs_of(of.is_mixed):
        wide = max(last - first, num_pixels // 300, 1)
        paths.append(f'<rect fill="{mixed}" x="{first}" y="0" width="{wide}" height="8"/>')
    return (
        f'<svg viewBox="0 0 {max(1, num_pixels)} 100" preserveAspectRatio="none" '
        f'role="img" aria-label="{text(of.what)} over time">{"".join(paths)}</svg>'
    )


def _runs_of(is_true: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where runs of true values begin, and where they end."""
    padded = np.pad(is_true.astype(np.int8), 1)
    begins, ends = (np.flatnonzero(np.diff(padded) == way).tolist() for way in (1, -1))
    return [*zip(begins, ends, strict=True)]


def _area(low: Floats, high: Floats, colour: str, height: float) -> str:
    """The area between two stepped lines of shares; pixels that show the same are one step."""
    steps = np.flatnonzero(np.diff(high.round(3)) + 2 * np.diff(low.round(3))) + 1
    edges = [0, *steps.tolist(), len(high)]
    runs = list(pairwise(edges))
    up = " ".join(f"L{a} {_y(high[a], height)}L{b} {_y(high[a], height)}" for a, b in runs)
    down = " ".join(f"L{b} {_y(low[a], height)}L{a} {_y(low[a], height)}" for a, b in runs[::-1])
    return f'<path fill="{colour}" d="M0 {height:g} {up} {down}Z"/>'


def _y(share: float, height: float) -> str:
    return f"{height * (1 - share):.1f}".removesuffix(".0")


def batches(of: Composition) -> str:
    """Batches over the run: tokens under the budget, requests, KV blocks, as far as it tells them.

    Empty where it tells none of them.
    """
    rows = [
        ("tokens a step", _known((DECODE, "decode", of.decode_tokens),
                                 (PREFILL, "prefill", of.prefill_tokens),
                                 (RECOMPUTE, "recompute", of.recompute_tokens))),
        ("requests", _known((COUNTER, "running", of.running), (WAITING, "waiting", of.waiting))),
        ("KV blocks free", _known((COUNTER, "free", of.kv_free))),
    ]  # fmt: skip
    charts = [row for row in rows if row[1]]
    if not charts:
        return ""
    height = len(charts) * (CHART + GAP) + GAP
    parts = [part for at, row in enumerate(charts) for part in _chart(at, *row)]
    last = height - 10
    parts.append(_label(NAMES, last, f"step {of.step[0]:,}"))
    parts.append(_label(NAMES + WIDE, last, f"step {of.step[-1]:,}", anchor="end"))
    return _svg(NAMES + WIDE + 10, height, parts, "batches over the run, by step")


Line = tuple[int, str, Floats]


def _known(*lines: Line) -> list[Line]:
    return [line for line in lines if np.isfinite(line[2]).any() and np.nanmax(line[2]) > 0]


def _chart(at: int, title: str, lines: Sequence[Line]) -> Iterator[str]:
    """A row of the chart: stacked tokens, else a line for each, with what the top stands for."""
    top = GAP + at * (CHART + GAP)
    values = [_means(line[2]) for line in lines]
    stacked = title == "tokens a step"
    tops = np.nancumsum(values, axis=0) if stacked else np.array(values)
    most = float(np.nanmax(tops))
    yield _label(0, top + 12, title, TEXT)
    yield _label(NAMES - 8, top + 12, count(round(most, 1)), anchor="end")
    yield _label(NAMES - 8, top + CHART, "0", anchor="end")
    yield f'<g transform="translate({NAMES} {top})">'
    yield f'<path stroke="{MUTED}" stroke-opacity=".4" d="M0 {CHART}H{WIDE}"/>'
    wider = WIDE / tops.shape[1]
    yield f'<g transform="scale({wider:.6f} 1)">'
    for place, (state, name, _) in enumerate(lines):
        low = tops[place - 1] if stacked and place else np.zeros(tops.shape[1])
        high = np.where(np.isfinite(tops[place]), tops[place], low)
        yield (
            _area(low / most, high / most, STATES[state].colour, CHART)
            if stacked
            else _stepped(tops[place] / most, STATES[state].colour, dashed=name == "waiting")
        )
    yield "</g></g>"
    x = 0.0
    for _, (state, name, _values) in enumerate(lines):
        yield f'<rect x="{x:g}" y="{top + 24}" width="9" height="9" fill="{STATES[state].colour}"/>'
        yield _label(x + 13, top + 32, name)
        x += 24 + 6.2 * len(name)


def _stepped(shares: Floats, colour: str, *, dashed: bool) -> str:
    """A line that holds each value until the next; it breaks where nothing is known."""
    parts, down = [], False
    for at, share in enumerate(shares.tolist()):
        if not np.isfinite(share):
            down = False
            continue
        parts.append(f"{'L' if down else 'M'}{at} {_y(share, CHART)}H{at + 1}")
        down = True
    dash = ' stroke-dasharray="5 3"' if dashed else ""
    style = 'fill="none" stroke-width="1.4" vector-effect="non-scaling-stroke"'
    return f'<path {style} stroke="{colour}"{dash} d="{"".join(parts)}"/>'


def _means(values: Floats) -> Floats:
    """Means of neighbours where there are more than can be drawn, NaN where none is known."""
    edges = np.linspace(0, len(values), min(POINTS, len(values)) + 1).astype(int)
    known = np.isfinite(values)
    sums = np.add.reduceat(np.where(known, values, 0.0), edges[:-1])
    counts = np.add.reduceat(known.astype(np.int64), edges[:-1])
    means: Floats = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return means


def waterfall(bars: Bars, rows: Sequence[Mapping[str, Any]]) -> str:
    """A bar for each row of `Blame.requests`, on one axis of time: what it was in when."""
    first = min(row["arrive_ns"] for row in rows)
    last = max(row["ended_ns"] for row in rows)
    parts = [part for at, row in enumerate(rows) for part in _bar(bars, at, row, first, last)]
    height = ROW * len(rows) + 30
    parts += _axis(last - first, height - 18)
    return _svg(NAMES + WIDE + 10, height, parts, "what each request was in, over time")


def _bar(bars: Bars, at: int, row: Mapping[str, Any], first: int, last: int) -> Iterator[str]:
    top = at * ROW
    yield _label(0, top + 11, row_name(row, WIDEST_NAME), TEXT)
    yield _label(NAMES - 8, top + 11, stated(row["latency_ns"]), anchor="end")
    pieces = bars.cells(row, first, last, CELLS)
    for group, ns in by_group(row).items():
        own = [piece for piece in pieces if piece.group == group]
        if not own:
            continue
        boxes = "".join(
            f"M{NAMES + WIDE * each.start / CELLS:g} {top}h{WIDE * each.length / CELLS:g}v{BAR}"
            f"h-{WIDE * each.length / CELLS:g}z"
            for each in own
        )
        said = text(f"{group}, {stated(ns)} in all")
        yield f'<path fill="{LOOKS[group].colour}" d="{boxes}"><title>{said}</title></path>'


def _axis(length_ns: int, y: float) -> Iterator[str]:
    yield f'<path stroke="{MUTED}" stroke-opacity=".4" d="M{NAMES} {y}H{NAMES + WIDE}"/>'
    for quarter in range(5):
        x = NAMES + WIDE * quarter / 4
        anchor = "start" if quarter == 0 else "end" if quarter == 4 else "middle"
        with of_one_trace(has_times=True):  # latencies are durations, clock or not
            said = moment(length_ns * quarter // 4, max(1, length_ns // 1000))
        yield _label(x, y + 14, said, anchor=anchor)


def _label(x: float, y: float, said: str, colour: str = MUTED, anchor: str = "start") -> str:
    at = f'x="{x:g}" y="{y:g}" fill="{colour}"'
    return f'<text {at} text-anchor="{anchor}">{text(said)}</text>'


def _svg(width: float, height: float, parts: Sequence[str], says: str) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {width:g} {height:g}" font-size="11" role="img" '
        f'aria-label="{text(says)}">{"".join(parts)}</svg>'
    )
