"""From an address to the view that it means: moves made, ranges filled in, strays left out.

Beside what a view spells, an address may carry `go`, a move from the view that the rest spells, by
its name in `app/timeline/moves.py`. So that every jump is a link.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs

from stepscope.app.palette import STATES
from stepscope.app.printable import plain
from stepscope.app.timeline import SpanView, Viewport
from stepscope.app.timeline.moves import MOVES
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.web.scene import Scene
from stepscope.app.web.view import LONGEST, Range, View


@dataclass(frozen=True, slots=True)
class Resolved:
    """A view with its range filled in, its cursor, and the span that is selected there."""

    view: View
    cursor: tuple[int | None, int]
    span: SpanView | None = None

    @property
    def t(self) -> Range:
        """The range on screen."""
        assert self.view.t is not None
        return self.view.t

    def as_props(self, scene: Scene) -> dict[str, Any]:
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
            "collapse": view.collapse,
            "mark": view.mark,
            "begun": view.begun,
            "finding": view.finding,
            "tab": view.tab,
            "selection": self._selection(scene),
            "related": self._related(scene),
            "during": self._during(scene),
            "search": f"?{spelled}" if spelled else "",
        }

    def _during(self, scene: Scene) -> Range | None:
        """From when to when the step in question ran."""
        index = scene.step_index(self.view.step)
        return None if index is None else scene.step_range(index)

    def _related(self, scene: Scene) -> list[str]:
        """Labels whose spans belong together: the selected block's, and the finding's."""
        labels = [self.span.label] if self.span else []
        block = (
            scene.findings[self.view.finding].evidence.get("block") if self.view.finding else None
        )
        return [*labels, plain(block)] if isinstance(block, str) else labels

    def _selection(self, scene: Scene) -> dict[str, Any] | None:
        if self.span is None:
            return None
        ends = self.span.start_ns - scene.origin, self.span.end_ns - scene.origin
        return {"start": ends[0], "end": ends[1], "label": self.span.label}


def resolve(scene: Scene, query: str) -> Resolved:
    """The view that an address means in this trace; never fails."""
    view = _sane(scene, View.parse(query))
    navigator = _navigator(scene, view)
    move = parse_qs(query[:LONGEST].removeprefix("?")).get("go", [""])[-1]
    is_somewhere = any((view.point, view.finding, view.step is not None))
    if move in MOVES:
        MOVES[move](navigator)
        view, is_somewhere = replace(view, step=None), True
    return _resolved(scene, view, navigator, is_somewhere)


def _sane(scene: Scene, view: View) -> View:
    """Without what this trace does not have."""
    lanes = len(scene.timeline.lanes)
    states = {state.name for state in scene.timeline.states}
    is_there = view.sel and view.sel[0] < lanes and view.sel[1] <= scene.length
    return replace(
        view,
        t=_within(scene, view.t),
        mark=_within(scene, view.mark),
        begun=view.begun if view.begun is not None and view.begun <= scene.length else None,
        sel=view.sel if is_there else None,
        at=view.at if view.at and view.at[0] < lanes and view.at[1] <= scene.length else None,
        finding=view.finding if view.finding in scene.findings else None,
        step=view.step if scene.step_index(view.step) is not None else None,
        pin=tuple(lane for lane in view.pin if lane < lanes),
        hide=tuple(name for name in view.hide if name in states),
        collapse=tuple(key for key in view.collapse if key in scene.collapsible),
    )


def _within(scene: Scene, ends: Range | None) -> Range | None:
    if ends is None or ends[0] >= scene.length:
        return None
    return ends[0], min(ends[1], scene.length)


def _navigator(scene: Scene, view: View) -> Navigator:
    """The navigator as an address says: what was selected last counts, then the range."""
    origin = scene.origin
    navigator = Navigator(
        scene.timeline,
        scene.result.findings,
        composition=scene.composition,
        pins=list(view.pin),
        collapsed=set() if view.t else set(view.collapse),
        hidden={at for at, state in enumerate(STATES) if state.name in view.hide},
    )
    _select(scene, view, navigator)
    navigator.mark = view.mark and (view.mark[0] + origin, view.mark[1] + origin)
    navigator.mark_from = None if view.begun is None else view.begun + origin
    if view.t:  # an address as it was left, and not a jump
        navigator.viewport = Viewport(view.t[0] + origin, view.t[1] + origin)
        navigator.collapsed = set(view.collapse)
    return navigator


def _select(scene: Scene, view: View, navigator: Navigator) -> None:
    """Go to the finding, the selection or the step, and frame it."""
    if view.step is not None:
        index = scene.step_index(view.step) or 0
        start, end = scene.step_range(index)
        navigator.cursor_ns = int(scene.composition.formed_ns[index])
        navigator.frame(start + scene.origin, end + scene.origin)
    if view.at:
        navigator.lane, navigator.cursor_ns = view.at[0], view.at[1] + scene.origin
    if view.finding:
        navigator.jump(list(scene.findings).index(view.finding))
    if view.sel:
        found = navigator.finding
        navigator.expand_to(view.sel[0])
        navigator.select(view.sel[0], view.sel[1] + scene.origin)
        navigator.finding = found
        if found is None and navigator.span:
            navigator.frame(navigator.span.start_ns, navigator.span.end_ns)


def _resolved(scene: Scene, view: View, navigator: Navigator, is_somewhere: bool) -> Resolved:
    """What a navigator looks at, as an address spells it."""
    origin = scene.origin
    cursor = navigator.lane, max(0, navigator.cursor_ns - origin)
    point = (navigator.lane, cursor[1]) if navigator.lane is not None and is_somewhere else None
    view = replace(
        view,
        t=(navigator.viewport.t0 - origin, navigator.viewport.t1 - origin),
        sel=point if navigator.span else None,
        at=None if navigator.span else point,
        finding=None if navigator.finding is None else list(scene.findings)[navigator.finding],
        mark=navigator.mark and (navigator.mark[0] - origin, navigator.mark[1] - origin),
        begun=None if navigator.mark_from is None else navigator.mark_from - origin,
        pin=tuple(navigator.pins),
        hide=tuple(STATES[state].name for state in sorted(navigator.hidden)),
        collapse=tuple(sorted(navigator.collapsed)),
    )
    step = _step_of(scene, view, navigator)
    return Resolved(replace(view, step=step), cursor, navigator.span)


def _step_of(scene: Scene, view: View, navigator: Navigator) -> int | None:
    """The step that is asked for, else that of the finding, else that of the cursor."""
    if view.step is not None:
        return view.step
    if view.finding and scene.step_index(scene.findings[view.finding].step) is not None:
        return scene.findings[view.finding].step
    index = navigator.step_index if view.point else None
    return None if index is None else scene.steps[index]
