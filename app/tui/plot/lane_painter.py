"""How a row of the timeline looks: a section, a group, or a lane with its name and spans."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from rich.style import Style
from textual.strip import Strip

from stepscope.analyzers.findings.finding import SEVERITIES, Finding
from stepscope.analyzers.findings.wording import times
from stepscope.app.palette import SEVERITY_MARKS, STATES
from stepscope.app.timeline import Lane, Picture, Timeline
from stepscope.app.timeline.flows.outlines import Outline
from stepscope.app.timeline.lane_rows import INLINE_GROUPS, Row, is_summary
from stepscope.app.timeline.lanes.tracks import COLLECTIVES, SAYS, STREAMS
from stepscope.app.timeline.lanes.waiting_queue import ABOUT as ABOUT_QUEUE
from stepscope.app.timeline.lanes.waiting_queue import WAITING_QUEUE
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.timeline.section_states import about_steps, states_in
from stepscope.app.tui.cells import Line
from stepscope.app.tui.ink import (
    ACCENT,
    BACKGROUND,
    BORDER,
    MUTED,
    PANEL,
    RAISED,
    TEXT,
    blend,
    ink,
    on,
)
from stepscope.app.tui.plot.span_bars import (
    MOMENT,
    Bytes,
    Looks,
    Plot,
    looks_of,
    outline,
    paint_counter,
    paint_density,
    paint_signs,
    paint_spans,
    signs_of,
)
from stepscope.app.widths import fit, fit_middle, width_of

UNDERLINED = Style(underline=True, bold=True)
TIED = {"preceding": "◂", "following": "▸"}
"""What stands where a span begins that led to the selected one, or that it led to."""
MARK = blend(ACCENT, BACKGROUND, 0.22)
NOTHING = "This trace has no steps, requests, cores, spans or counters to draw."
ABOUT = {
    "pinned": "lanes kept in sight",
    **{section: f"{says}  █ ▓ ▒ ░ categories" for section, says in SAYS.items()},
    **{section: f"{SAYS[section]}  █ ▓ ▒ ░ names" for section in (STREAMS, COLLECTIVES)},
    WAITING_QUEUE: ABOUT_QUEUE,
    "segments": "parts of a batch that run by themselves",
    "buffers": "accesses by stream, contents by buffer",
    "counters": "sampled numbers",
}
"""What is in a section; the signs of its states follow."""


MOST_MARKED = 2_000
"""Findings that have a sign on their lanes, the worst first."""
FindingMarks = dict[tuple[int, str], list[int]]


@dataclass(frozen=True, slots=True)
class Shown:
    """What a picture of the lanes on the screen depends on."""

    timeline: Timeline
    rows: list[Row]
    top: int
    height: int
    plot: Plot
    hidden: frozenset[int]

    def is_same(self, other: Shown) -> bool:
        """Tell whether the same picture would come out; rows are replaced, never changed."""
        return (
            self.timeline is other.timeline
            and self.rows is other.rows
            and (self.top, self.height) == (other.top, other.height)
            and (self.plot, self.hidden) == (other.plot, other.hidden)
        )


@dataclass(frozen=True, slots=True)
class Painting:
    """A picture of the lanes on the screen, and the place of each lane in it."""

    shown: Shown
    picture: Picture
    looks: Looks
    signs: Bytes
    places: dict[int, int]

    @classmethod
    def of(cls, shown: Shown) -> Painting:
        """Ask the timeline once for all lanes."""
        rows = shown.rows[shown.top : shown.top + shown.height]
        lanes = list(dict.fromkeys(lane.id for row in rows for lane in row.lanes))
        view, width = shown.plot.viewport, shown.plot.width
        picture = shown.timeline.query(view.t0, view.t1, width, lanes, shown.hidden)
        looks = looks_of(picture.state, picture.density)
        signs = signs_of(picture.state, picture.mark)
        places = {lane: place for place, lane in enumerate(lanes)}
        return cls(shown, picture, looks, signs, places)


@dataclass(frozen=True, slots=True)
class LanePainter:
    """Paints the rows of a state from a painting of the lanes on the screen."""

    state: Navigator
    painting: Painting
    outlines: Sequence[Outline] = ()

    @property
    def plot(self) -> Plot:
        """Where the spans are drawn; the names of the lanes stand left of it."""
        return self.painting.shown.plot

    @property
    def shared(self) -> tuple[object, ...]:
        """All that any line depends on; a picture is made anew for other rows or another view."""
        state = self.state
        return (
            id(self.painting), tuple(self.outlines), state.cursor_ns, state.span is None,
            state.mark, state.marked_lanes, tuple(state.pins), tuple(state.collapsed),
            id(state.findings),
        )  # fmt: skip

    def own(self, index: int) -> tuple[object, ...]:
        """All that a line depends on beside that: what is selected in it."""
        row = self.state.rows[index] if index < len(self.state.rows) else None
        lanes = () if row is None else [lane.id for lane in row.lanes]
        is_selected, span = self.state.lane in lanes, self.state.span
        return (
            is_selected,
            span if span and span.lane in lanes else None,
            self.state.selection.finding if is_selected else None,
        )

    def strip(self, index: int) -> Strip:
        """A row by its number; an empty line after the last."""
        line = Line(self.plot.right, ink(TEXT, BACKGROUND))
        if index < len(self.state.rows):
            row = self.state.rows[index]
            if row.lane:
                return self._lane(row, row.lane, index).strip()
            if row.kind == "section":
                return self._section(row).strip()
            line.put(2, row.group, ink(MUTED, BACKGROUND, bold=True))
        elif not self.state.rows and index == 1:
            line.put(2, NOTHING, ink(MUTED, BACKGROUND))
        return line.strip()

    def _section(self, row: Row) -> Line:
        line = Line(self.plot.right, ink(TEXT, PANEL))
        is_collapsed = row.section in self.state.collapsed
        arrow = "★" if row.section == "pinned" else ("▸" if is_collapsed else "▾")
        x = line.put(1, f"{arrow} {row.section}", ink(TEXT, PANEL, bold=True))
        legend = section_legend(row.section, self.state.timeline, self.state.hidden)
        if is_collapsed:
            lanes = sum(
                lane.section == row.section and not is_summary(lane)
                for lane in self.state.timeline.lanes
            )
            states = () if row.section in SAYS else legend
            about = [f"{times(lanes, 'lane')} collapsed", *states]
        else:
            about = legend
        x = max(self.plot.left, x + 2)
        for entry in about:
            if x + width_of(entry) > line.width:
                break
            x = line.put(x, entry, ink(MUTED, PANEL)) + 2
        if is_collapsed:
            hidden = [lane.id for lane in self.state.timeline.lanes if lane.section == row.section]
            self._paint_findings(line, hidden, PANEL)
        return line

    def _lane(self, row: Row, lane: Lane, index: int) -> Line:
        is_selected = any(each.id == self.state.lane for each in row.lanes)
        surface = RAISED if is_selected else BACKGROUND
        line = Line(self.plot.right, ink(TEXT, surface))
        if row.kind == "strip":
            self._paint_strip(line, row, surface)
        else:
            self._paint_name(line, row, lane, index, surface)
            self._paint_picture(line, lane, surface)
        self._paint_mark(line, row)
        self._paint_outlines(line, row, surface)
        self._paint_cursor(line, surface)
        self._paint_findings(line, [each.id for each in row.lanes], surface)
        span = self.state.span
        if span and span.lane == lane.id and row.kind == "lane":
            outline(line, self.plot, span.start_ns, span.end_ns, ink(ACCENT, surface))
        if is_selected:
            self._paint_finding(line)
        return line

    # ── the name ─────────────────────────────────────────────────────────────────────────────

    def _paint_name(self, line: Line, row: Row, lane: Lane, index: int, surface: str) -> None:
        is_selected = lane.id == self.state.lane
        if is_selected:
            line.put(0, "▌", ink(ACCENT, surface))
        x, end = 2, self.plot.left - 1
        if row.section in INLINE_GROUPS or row.is_pinned:
            x = self._paint_group(line, row, lane, index, surface)
        # A lane below what encloses its spans goes on without a name.
        name = lane.label if not lane.depth or is_selected or row.is_pinned else "┆"
        style = ink(TEXT if is_selected or x == 2 else MUTED, surface, bold=is_selected)
        after = line.put(x, fit_middle(name, end - x), style)
        if lane.kind == "counter":
            self._paint_value(line, lane, after + 1, surface)
        if lane.id in self.state.pins:
            line.put(1, "★", ink(ACCENT, surface))

    def _paint_group(self, line: Line, row: Row, lane: Lane, index: int, surface: str) -> int:
        """Name the lane's group unless the lane above did; gives the cell for the lane's name."""
        above = self.state.rows[index - 1].lane if index else None
        room = self.plot.left - 8
        if lane.group and (row.is_pinned or above is None or above.group != lane.group):
            short = lane.group if room >= len("group 10") else lane.group.removeprefix("group ")
            line.put(2, fit(short, room), ink(TEXT, surface))
        return 2 + room + 1 if lane.group else 2

    def _paint_value(self, line: Line, lane: Lane, start: int, surface: str) -> None:
        """Write a counter's value at the cursor beside its name."""
        sample = self.state.timeline.at(lane.id, self.state.cursor_ns)
        end = self.plot.left - 1
        if sample and start + width_of(sample.label) <= end:
            line.put_right(sample.label, ink(MUTED, surface), end)

    # ── the plot ─────────────────────────────────────────────────────────────────────────────

    def _paint_picture(self, line: Line, lane: Lane, surface: str) -> None:
        picture, at = self.painting.picture, self.painting.places[lane.id]
        if lane.kind == "counter":
            paint_counter(line, self.plot, picture.density[at], picture.count[at] > 0, surface)
            return
        paint_density(line, self.plot, self.painting.looks[at], surface)
        spans = picture.spans[at]
        if spans is None:
            paint_signs(line, self.plot, self.painting.signs[at], surface)
        else:
            paint_spans(line, self.plot, spans, self.state.hidden, surface)

    def _paint_strip(self, line: Line, row: Row, surface: str) -> None:
        """Show of each cell what the busiest lane of the group has there."""
        name = fit(f"▸ {row.group} × {len(row.lanes)}", self.plot.left - 3)
        line.put(2, name, ink(TEXT, surface))
        places = [self.painting.places[lane.id] for lane in row.lanes]
        density = self.painting.picture.density[places]
        busiest, cells = density.argmax(axis=0), range(density.shape[1])
        paint_density(line, self.plot, self.painting.looks[places][busiest, cells], surface)
        paint_signs(line, self.plot, self.painting.signs[places].max(axis=0), surface)

    def _paint_outlines(self, line: Line, row: Row, surface: str) -> None:
        """Mark where arrows come from and lead to, and underline the path and what was picked."""
        lanes = {lane.id for lane in row.lanes}
        for each in self.outlines:
            start, end = self.plot.cell(each.start_ns), self.plot.cell(each.end_ns)
            if each.lane not in lanes or end < self.plot.left or start >= self.plot.right:
                continue
            first, last = self.plot.clip(start), max(self.plot.clip(end), self.plot.clip(start) + 1)
            if each.why in ("path", "picked"):
                line.restyle(first, min(last, self.plot.right), UNDERLINED)
            elif each.why in TIED and first < self.plot.right:
                line.put(first, TIED[each.why], ink(ACCENT, surface, bold=True))

    def _paint_mark(self, line: Line, row: Row) -> None:
        marked = self.state.marked_lanes
        if marked and not any(lane.id in marked for lane in row.lanes):
            return
        if self.state.mark:
            start, end = (self.plot.clip(self.plot.cell(at)) for at in self.state.mark)
            line.restyle(start, max(end, start + 1), on(MARK))

    def _paint_cursor(self, line: Line, surface: str) -> None:
        x = self.plot.cell(self.state.cursor_ns)
        if not self.plot.left <= x < self.plot.right:
            return
        # A blank between the words of a span's name is no free cell.
        free = on(surface).bgcolor, on(MARK).bgcolor
        is_free = line.glyph(x) == " " and line.style(x).bgcolor in free
        if is_free:
            line.put(x, "┊", ink(BORDER if self.state.span else ACCENT, surface))

    def _paint_findings(self, line: Line, lanes: Sequence[int], surface: str) -> None:
        """Put a sign where a finding about any of these lanes begins, the worst first."""
        marks = _marks_of(self.state)
        taken: set[int] = set()
        for severity in SEVERITIES:
            own = (ts for lane in lanes for ts in marks.get((lane, severity), ()))
            for x in sorted({self.plot.cell(ts) for ts in own}):
                if not self.plot.left <= x < self.plot.right or {x - 1, x} & taken:
                    continue
                mark = SEVERITY_MARKS[severity]
                line.put(x, mark.glyph, ink(mark.colour, surface, bold=True))
                taken.add(x)

    def _paint_finding(self, line: Line) -> None:
        found = self.state.selection.finding
        if found is None or found.ts_ns is None:
            return
        mark = SEVERITY_MARKS[found.severity]
        x = self.plot.cell(found.ts_ns)
        if self.plot.left <= x < self.plot.right:
            line.put(x, mark.glyph, ink(BACKGROUND, mark.colour, bold=True))


_MARKS: WeakKeyDictionary[Timeline, tuple[Sequence[Finding], FindingMarks]] = WeakKeyDictionary()


def _marks_of(state: Navigator) -> FindingMarks:
    """When findings about a lane begin, by lane and severity; made once for a list of findings."""
    findings = state.findings or ()
    known = _MARKS.get(state.timeline)
    if known is None or known[0] is not findings:
        marks: FindingMarks = {}
        for found in findings[:MOST_MARKED]:
            lane = state.timeline.lane_of(found)
            if lane is not None and found.ts_ns is not None:
                marks.setdefault((lane, found.severity), []).append(found.ts_ns)
        known = _MARKS[state.timeline] = findings, marks
    return known[1]


def section_legend(section: str, timeline: Timeline, hidden: Collection[int] = ()) -> list[str]:
    """What the header of a section says: what is in it, and the sign of each state and its name."""
    about = about_steps(timeline) if section == "steps" else ABOUT.get(section)
    shown = states_in(section, timeline, hidden)
    signs = [f"{state.glyph} {name}" for state, name in shown]
    if section == WAITING_QUEUE:
        shades = sorted(timeline.kinds_of(section))
        signs.append(f"{''.join(STATES[shade].glyph for shade in shades)} shades of requests")
    told = [*([about] if about else ()), *signs]
    return [*told, f"{MOMENT} moment"] if timeline.has_moments(section) else told


def name_width(lane: Lane) -> int:
    """How many cells the name of a lane wants."""
    if lane.section in INLINE_GROUPS:
        return width_of(lane.group) + 1 + width_of(lane.label)
    # A counter's value stands beside its name.
    return width_of(lane.label) + (6 if lane.kind == "counter" else 0)
