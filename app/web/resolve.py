"""From an address to the view that it means: moves made, ranges filled in, strays left out.

Beside what a view spells, an address may carry `go`, a move from the view that the rest spells: by
its name in `app/timeline/moves.py`, or to a hit of what is looked for. So every jump is a link, and
so is the begin and the end of a run with changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs

from stepscope.app.palette import STATES
from stepscope.app.present.spans.said import said
from stepscope.app.printable import plain
from stepscope.app.timeline import SpanView, Viewport
from stepscope.app.timeline.area.selection import Selection
from stepscope.app.timeline.flags.flag_walk import go_to_flag
from stepscope.app.timeline.flows.outlines import outlines
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.panes.flags import GO, flags_told
from stepscope.app.web.panes.what_if import ask_what_if
from stepscope.app.web.stops import go_by_step, go_to_hit, goes_to_hit, looked, stood
from stepscope.app.web.view import LONGEST, Range, View

STEP_MOVES = {"next-step": 1, "previous-step": -1}
"""The moves that go by steps of the rank that is stood at, where that is not the usual one."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A view with its range filled in, its cursor, and what is selected there."""

    view: View
    cursor: tuple[int | None, int]
    navigator: Navigator = field(compare=False)

    @property
    def selection(self) -> Selection:
        """What is selected there."""
        return self.navigator.selection

    @property
    def span(self) -> SpanView | None:
        """The span that is selected."""
        return self.selection.span

    @property
    def t(self) -> Range:
        """The range on screen."""
        assert self.view.t is not None
        return self.view.t

    def as_props(self, loaded: LoadedTrace) -> dict[str, Any]:
        """What the page needs of it; `search` is the one spelling of the address."""
        view = self.view
        spelled = view.spell()
        return {
            "t0": self.t[0],
            "t1": self.t[1],
            "lane": self.cursor[0],
            "at": self.cursor[1],
            "pin": view.pin,
            "hide": view.hide,
            "collapse": sorted(_collapsed(loaded, view)),
            "mark": view.mark,
            "begun": view.begun,
            "lanes": view.lanes,
            "colours": loaded.coloured(view).colours,
            "outlines": self._outlines(loaded),
            "finding": view.finding,
            "tab": view.tab,
            "hits": self._hits(loaded),
            "diverged": loaded.diverged,
            "selection": self._selection(loaded),
            "related": self._related(loaded),
            "during": self._during(loaded),
            "said": said(loaded.coloured(self.view), self.selection, self.cursor[0]),
            "search": f"?{spelled}" if spelled else "",
            **flags_told(loaded, view, self.navigator),
        }

    def _hits(self, loaded: LoadedTrace) -> dict[str, Any] | None:
        """Where the condition that is looked for is met, and which hit the view stands at."""
        if not loaded.is_one:
            return loaded.diverged_places
        found = looked(loaded, self.view)
        return None if found is None else {"told": found.told, "places": found.places}

    def _outlines(self, loaded: LoadedTrace) -> list[tuple[int, int, int, str]]:
        """What stands out beside the selection: lane, from when, until when, and why."""
        found = outlines(self.selection, loaded.coloured(self.view))
        return [
            (each.lane, each.start_ns - loaded.origin, each.end_ns - loaded.origin, each.why)
            for each in found
        ]

    def _during(self, loaded: LoadedTrace) -> Range | None:
        """From when to when the step in question ran."""
        index = loaded.step_index(self.view.step)
        return None if index is None else loaded.step_range(index)

    def _related(self, loaded: LoadedTrace) -> list[str]:
        """Labels whose spans belong together: the selected block's, and the finding's."""
        labels = [self.span.label] if self.span else []
        block = (
            loaded.findings[self.view.finding].evidence.get("block") if self.view.finding else None
        )
        return [*labels, plain(block)] if isinstance(block, str) else labels

    def _selection(self, loaded: LoadedTrace) -> dict[str, Any] | None:
        if self.span is None:
            return None
        ends = self.span.start_ns - loaded.origin, self.span.end_ns - loaded.origin
        return {"start": ends[0], "end": ends[1], "label": self.span.label}


def resolve(loaded: LoadedTrace, query: str) -> Resolved:
    """The view that an address means in this trace; never fails."""
    view = _sane(loaded, View.parse(query))
    if not loaded.is_whole:  # what needs every row since the beginning
        view = replace(view, stop=None, value=None, rank=None, seq=None, ts=None, who=None)
    move = parse_qs(query[:LONGEST].removeprefix("?")).get("go", [""])[-1]
    if loaded.is_whole:
        ask_what_if(loaded, view.what, move)
    if goes_to_hit(move) and loaded.is_whole:
        return _moved(loaded, *go_to_hit(loaded, view, move))
    if view.rank is not None and move in STEP_MOVES:
        return _moved(loaded, *go_by_step(loaded, view, STEP_MOVES[move]))
    is_between = view.seq is not None or view.ts is not None
    view, here_ns = stood(loaded, view) if is_between else (view, 0)
    navigator = _navigator(loaded, view)
    is_somewhere = any((view.point, view.finding, view.step is not None, is_between))
    if is_between and not view.point:
        navigator.cursor_ns = here_ns
    flag = next((each for each in navigator.flags if move == f"{GO}{each.name}"), None)
    if flag is not None:
        go_to_flag(navigator, flag)
        view, is_somewhere = replace(view, step=None, seq=None, ts=None), True
    if move in loaded.moves:
        before_ns = navigator.cursor_ns
        loaded.moves[move](navigator)
        if not is_between or navigator.cursor_ns != before_ns:
            view = replace(view, step=None, seq=None, ts=None)
        is_somewhere = True
    return _resolved(loaded, view, navigator, is_somewhere)


def asks_for_findings(query: str) -> bool:
    """Whether an address means a finding, or leads to the next."""
    move = parse_qs(query[:LONGEST].removeprefix("?")).get("go", [""])[-1]
    return View.parse(query).finding is not None or move in ("next-finding", "previous-finding")


def _moved(loaded: LoadedTrace, view: View, here_ns: int) -> Resolved:
    """The view at where a debug session went, at the same zoom."""
    navigator = _navigator(loaded, view)
    navigator.move_to(here_ns)
    return _resolved(loaded, view, navigator, is_somewhere=True)


def _sane(loaded: LoadedTrace, view: View) -> View:
    """Without what this trace does not have."""
    lanes = len(loaded.timeline.lanes)
    states = {state.name for state in loaded.timeline.states}
    is_there = view.sel and view.sel[0] < lanes and view.sel[1] <= loaded.length
    return replace(
        view,
        t=_within(loaded, view.t),
        mark=_within(loaded, view.mark),
        begun=view.begun if view.begun is not None and view.begun <= loaded.length else None,
        sel=view.sel if is_there else None,
        at=view.at if view.at and view.at[0] < lanes and view.at[1] <= loaded.length else None,
        finding=view.finding if view.finding in loaded.findings else None,
        rank=_other_rank(loaded, view.rank),
        step=view.step if loaded.step_index(view.step) is not None else None,
        lanes=tuple(lane for lane in view.lanes if lane < lanes),
        pin=tuple(lane for lane in view.pin if lane < lanes),
        hide=tuple(name for name in view.hide if name in states),
        collapse=tuple(key for key in view.collapse if key in loaded.collapsible),
        align=loaded.align,
        tab=view.tab
        if any(view.tab == each.name for each in loaded.panes)
        else loaded.panes[0].name,
    )


def _other_rank(loaded: LoadedTrace, rank: int | None) -> int | None:
    """A rank that the trace has beside the usual one."""
    if (
        rank is None
        or not loaded.is_whole
        or rank == loaded.session.rank
        or rank not in loaded.debugger.ranks
    ):
        return None
    return rank


def _within(loaded: LoadedTrace, ends: Range | None) -> Range | None:
    if ends is None or ends[0] >= loaded.length:
        return None
    return ends[0], min(ends[1], loaded.length)


def _navigator(loaded: LoadedTrace, view: View) -> Navigator:
    """The navigator as an address says: what was selected last counts, then the range."""
    origin = loaded.origin
    navigator = Navigator(
        loaded.coloured(view),
        None if loaded.result is None else tuple(loaded.findings.values()),
        loaded.without_findings,
        composition=loaded.composition,
        pins=list(view.pin),
        collapsed=set() if view.t else _collapsed(loaded, view),
        hidden={at for at, state in enumerate(STATES) if state.name in view.hide},
        marked_lanes=view.lanes,
        pick=view.pick,
        shows_path=view.path is not None,
        flags=loaded.placed_flags.now,
    )
    mark = view.mark and (view.mark[0] + origin, view.mark[1] + origin)
    navigator.mark = mark
    _select(loaded, view, navigator)
    navigator.mark_from = None if view.begun is None else view.begun + origin
    if view.t:  # an address as it was left, and not a jump, which may let go of the mark
        navigator.mark = mark
        navigator.viewport = Viewport(view.t[0] + origin, view.t[1] + origin)
        navigator.collapsed = _collapsed(loaded, view)
    return navigator


def _collapsed(loaded: LoadedTrace, view: View) -> set[str]:
    """What is collapsed: an address spells what is otherwise than at first."""
    return set(loaded.timeline.collapsed_at_first.symmetric_difference(view.collapse))


def _select(loaded: LoadedTrace, view: View, navigator: Navigator) -> None:
    """Go to the finding, the selection or the step, and frame it."""
    if view.step is not None:
        index = loaded.step_index(view.step) or 0
        start, end = loaded.step_range(index)
        navigator.cursor_ns = int(loaded.composition.formed_ns[index])
        navigator.frame(start + loaded.origin, end + loaded.origin)
    if view.at:
        navigator.lane, navigator.cursor_ns = view.at[0], view.at[1] + loaded.origin
        navigator.is_placed = True
    if view.finding:
        navigator.jump(list(loaded.findings).index(view.finding))
    if view.sel:
        found = navigator.finding
        navigator.expand_to(view.sel[0])
        navigator.select(view.sel[0], view.sel[1] + loaded.origin)
        navigator.finding = found
        if found is None and navigator.span:
            navigator.frame(navigator.span.start_ns, navigator.span.end_ns)


def _resolved(
    loaded: LoadedTrace, view: View, navigator: Navigator, is_somewhere: bool
) -> Resolved:
    """What a navigator looks at, as an address spells it."""
    origin = loaded.origin
    cursor = navigator.lane, max(0, navigator.cursor_ns - origin)
    colours = navigator.timeline.colours
    point = (navigator.lane, cursor[1]) if navigator.lane is not None and is_somewhere else None
    navigator.is_placed = point is not None
    view = replace(
        view,
        t=(navigator.viewport.t0 - origin, navigator.viewport.t1 - origin),
        sel=point if navigator.span else None,
        at=None if navigator.span else point,
        finding=None if navigator.finding is None else list(loaded.findings)[navigator.finding],
        mark=navigator.mark and (navigator.mark[0] - origin, navigator.mark[1] - origin),
        begun=None if navigator.mark_from is None else navigator.mark_from - origin,
        lanes=navigator.marked_lanes,
        pick=navigator.pick,
        path=1 if navigator.shows_path else None,
        colours=None if colours == loaded.timeline.colours else colours,
        pin=tuple(navigator.pins),
        hide=tuple(STATES[state].name for state in sorted(navigator.hidden)),
        collapse=tuple(sorted(navigator.collapsed ^ loaded.timeline.collapsed_at_first)),
    )
    step = _step_of(loaded, view, navigator)
    return Resolved(replace(view, step=step), cursor, navigator)


def _step_of(loaded: LoadedTrace, view: View, navigator: Navigator) -> int | None:
    """The step that is asked for, else that of the finding, else that of the cursor."""
    if view.step is not None:
        return view.step
    found = loaded.findings[view.finding] if view.finding else None
    is_walked = found is not None and found.rank in (None, loaded.timeline.walked_rank)
    if found and is_walked and loaded.step_index(found.step) is not None:
        return found.step
    index = navigator.step_index if view.point else None
    return None if index is None else loaded.steps[index]
