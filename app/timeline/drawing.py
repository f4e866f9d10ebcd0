"""A window of the timeline as an SVG picture, for pages that nobody can zoom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from stepscope.app import palette, units
from stepscope.app.printable import plain
from stepscope.app.timeline.lanes.lane import Lane
from stepscope.app.timeline.picture import Picture, SpanView
from stepscope.app.timeline.section_states import word_of
from stepscope.app.timeline.viewport import Viewport

if TYPE_CHECKING:
    from stepscope.analyzers.findings.finding import Finding
    from stepscope.app.timeline.model import Timeline

NAMES, LANES, ROW, BAR, MARGIN = 150, 730, 22, 16, 12
"""Pixels: width of the lane names and of the lanes, height of a lane and of its bar, the margin."""
RULER, LEGEND = 24, 22
LEAST = 3  # pixels of height of each part of a bar that is split
GRAIN = 2  # pixels that show the same, where spans are too many to draw each
LETTER = 6.1  # width of a letter of a label, at 10 px
MAX_LANES = 16
DARK = frozenset({*palette.WAITS, palette.IDLE, palette.HELD, palette.FRONT_END, palette.AIC})


@dataclass(frozen=True, slots=True)
class Drawing:
    """Lanes of a timeline from `view.t0` to `view.t1`, with [`first_ns`, `last_ns`] framed."""

    timeline: Timeline
    lanes: tuple[Lane, ...]
    view: Viewport
    first_ns: int
    last_ns: int
    severity: str

    def svg(self) -> str:
        """Return the picture, a document of its own."""
        height = RULER + ROW * len(self.lanes) + LEGEND + 2 * MARGIN
        width = NAMES + LANES + 2 * MARGIN
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="ui-monospace, monospace" font-size="10">',
            _box(0, 0, width, height, palette.BACKGROUND),
            f'<g transform="translate({MARGIN},{MARGIN})">',
            *self._ruler(),
            *(part for row, lane in enumerate(self.lanes) for part in self._lane(row, lane)),
            *self._frame(),
            *self._legend(),
            "</g></svg>\n",
        ]
        return "\n".join(parts)

    def _lane(self, row: int, lane: Lane) -> Iterator[str]:
        top = RULER + row * ROW
        label = lane.label if lane.group in {"", lane.label} else f"{lane.group} {lane.label}"
        if not lane.depth:
            yield _text(0, top + 12, label[:24], palette.MUTED)
        yield _box(NAMES, top, LANES, BAR, palette.PANEL)
        picture = self.timeline.query(self.view.t0, self.view.t1, LANES // GRAIN, [lane.id])
        spans = picture.spans[0]
        if spans is None:
            yield from self._pixels(top, picture.state[0].tolist())
            yield from self._signs(top, picture)
        else:
            for span in spans:
                yield from self._span(top, span)

    def _pixels(self, top: int, states: Sequence[int]) -> Iterator[str]:
        x = NAMES
        for state, run in groupby(states):
            width = GRAIN * len(list(run))
            if state:
                yield from _bar(x, top, width, state)
            x += width

    def _signs(self, top: int, picture: Picture) -> Iterator[str]:
        """The glyphs of states that are marks, where another fills the pixel or they begin."""
        state, mark = picture.state[0].tolist(), picture.mark[0].tolist()
        x, last = -LETTER, -2 * LETTER
        for at, kind in enumerate(mark):
            x = NAMES + GRAIN * at
            is_seen = kind and (kind != state[at] or not at or mark[at - 1] != kind)
            if is_seen and x - last >= 2 * LETTER:
                last = x
                shown = palette.STATES[kind]
                yield _box(x - LETTER / 2, top + 2, LETTER + 2, BAR - 4, palette.BACKGROUND)
                yield _text(x - LETTER / 2 + 1, top + 12, shown.glyph, shown.colour)

    def _span(self, top: int, span: SpanView) -> Iterator[str]:
        first, last = self._x(span.start_ns), self._x(span.end_ns)
        width = max(last - first, 1.0)
        state = palette.STATES[span.state]
        yield from _bar(first, top, width, span.state, span.parts, f"{state.name}: {span.label}")
        room = int((width - 4) / LETTER)
        if room >= min(3, len(span.label)) and span.label:
            text = span.label if len(span.label) <= room else span.label[: room - 1] + "…"
            colour = palette.TEXT if span.state in DARK else palette.INK
            yield _text(first + 3, top + 12, text, colour)

    def _frame(self) -> Iterator[str]:
        colour = palette.SEVERITY_MARKS[self.severity].colour
        first, last = self._x(self.first_ns), self._x(self.last_ns)
        yield (
            f'<rect x="{first - 2:.1f}" y="{RULER - 4}" width="{max(last - first, 1) + 4:.1f}" '
            f'height="{ROW * len(self.lanes) + 4}" fill="none" stroke="{colour}" '
            f'stroke-width="1.5" stroke-dasharray="4 3"/>'
        )

    def _ruler(self) -> Iterator[str]:
        resolution_ns = max(self.view.span_ns // LANES, 1)
        # Of a view of a nanosecond or three some are the same.
        for ts_ns in dict.fromkeys(self.view.t0 + self.view.span_ns * n // 4 for n in range(5)):
            label = units.moment(ts_ns - self.timeline.bounds[0], resolution_ns)
            x = min(self._x(ts_ns), NAMES + LANES - LETTER * len(label))
            yield _text(x, 12, label)

    def _legend(self) -> Iterator[str]:
        lanes = [lane.id for lane in self.lanes]
        picture = self.timeline.query(self.view.t0, self.view.t1, LANES // GRAIN, lanes)
        found = {*np.unique(picture.state).tolist(), *np.unique(picture.mark).tolist()}
        seen = found & {*palette.IN_LEGEND}
        x, y = float(NAMES), RULER + ROW * len(self.lanes) + 6
        for state in sorted(seen):
            is_split = palette.STATES[state].cue == "split"
            halves = palette.PARTS[-2:] if is_split else (state, state)
            for at, half in enumerate(halves):
                yield _box(x, y + 5 * at, 10, 5, palette.STATES[half].colour)
            word = word_of(state, self.timeline)
            yield _text(x + 14, y + 9, word)
            x += 14 + LETTER * len(word) + 16

    def _x(self, ts_ns: int) -> float:
        share = (ts_ns - self.view.t0) / self.view.span_ns
        return NAMES + LANES * min(max(share, 0.0), 1.0)


def drawing_of(timeline: Timeline, finding: Finding) -> Drawing:
    """Draw what a finding is about: its lane and those beside it, some time around it.

    A finding without a time, or with one that is all of the trace, is drawn with all of the trace.
    """
    first, last = timeline.bounds
    first_ns = first if finding.ts_ns is None else finding.ts_ns
    last_ns = max(first_ns, min(last, finding.end_ns or first_ns))
    around = last_ns - first_ns or (last - first) // 50
    view = Viewport(first, last).fit(first_ns, first_ns + around, 0.6).clamp(timeline.bounds)
    lanes = _beside(timeline, finding)
    return Drawing(timeline, lanes, view, first_ns, last_ns, str(finding.severity))


def _beside(timeline: Timeline, finding: Finding) -> tuple[Lane, ...]:
    about = timeline.lane_of(finding)
    steps = [lane for lane in timeline.lanes if lane.section == "steps"]
    if about is None:
        return tuple(steps or timeline.lanes)[:MAX_LANES]
    lane = timeline.lanes[about]
    if lane.section == "core groups" and finding.group is not None:
        others = [each for each in timeline.lanes if each.section == lane.section]
        own = [each for each in others if (each.rank, each.group) == (lane.rank, lane.group)]
        return (*steps, *own)[:MAX_LANES]
    section = [each for each in timeline.lanes if each.section == lane.section]
    if lane.section == "steps":
        section = [each for each in timeline.lanes if each.section == "requests"] or []
        return (*steps, *section)[:MAX_LANES]
    place = section.index(lane)
    room = MAX_LANES - len(steps)
    start = max(0, min(place - room // 2, len(section) - room))
    return (*steps, *section[start : start + room])[:MAX_LANES]


def _bar(
    x: float,
    top: float,
    width: float,
    state: int,
    shares: Sequence[float] = (),
    title: str = "",
) -> Iterator[str]:
    """A box in the colour of a state; one that is split has its parts above each other."""
    if palette.STATES[state].cue != "split":
        yield _box(x, top, width, BAR, palette.STATES[state].colour, title)
        return
    known = [(part, share) for part, share in zip(palette.PARTS, shares, strict=False) if share]
    parts = known or [(part, 0.5) for part in palette.PARTS[-2:]]
    spare = BAR - LEAST * len(parts)
    for part, share in parts:
        height = LEAST + spare * share
        yield _box(x, top, width, height, palette.STATES[part].colour, title)
        top += height


def _box(x: float, y: float, width: float, height: float, colour: str, title: str = "") -> str:
    end = f"><title>{escape(plain(title))}</title></rect>" if title else "/>"
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="{colour}"{end}'
    )


def _text(x: float, y: float, text: str, colour: str = palette.MUTED) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}">{escape(plain(text))}</text>'
