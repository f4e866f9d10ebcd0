"""From an address to the view that it means: jumps resolved, ranges filled in, strays left out.

Beside what a view spells, an address may carry `go`, a jump from the view that the rest spells:
next or previous finding, step or span. So that every jump is a link.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs

from stepscope.app.printable import plain
from stepscope.app.timeline import SpanView, Viewport
from stepscope.app.web.scene import Scene
from stepscope.app.web.view import LONGEST, Range, View

FINDING_SHARE = 0.2
"""Share of the view that a finding or a selection takes when it is jumped to."""
MOMENT_SHARE = 0.01
"""Share of the trace that is shown around what has no length."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A view with its range filled in, and the span that is selected in it."""

    view: View
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
            "pin": view.pin,
            "hide": view.hide,
            "fold": view.fold,
            "mark": view.mark,
            "finding": view.finding,
            "tab": view.tab,
            "selection": self._selection(scene),
            "kin": self._kin(scene),
            "during": self._during(scene),
            "search": f"?{spelled}" if spelled else "",
        }

    def _during(self, scene: Scene) -> Range | None:
        """From when to when the step in question ran."""
        index = scene.step_index(self.view.step)
        return None if index is None else scene.step_range(index)

    def _kin(self, scene: Scene) -> list[str]:
        """Labels whose spans belong together: the selected block's, and the finding's."""
        labels = [self.span.label] if self.span else []
        block = (
            scene.findings[self.view.finding].evidence.get("block") if self.view.finding else None
        )
        return [*labels, plain(block)] if isinstance(block, str) else labels

    def _selection(self, scene: Scene) -> dict[str, Any] | None:
        if self.view.sel is None:
            return None
        lane, at = self.view.sel
        chosen: dict[str, Any] = {"lane": lane, "at": at, "start": at, "end": at, "label": ""}
        if self.span:
            chosen["start"] = self.span.start_ns - scene.origin
            chosen["end"] = self.span.end_ns - scene.origin
            chosen["label"] = self.span.label
        return chosen


def arrive(scene: Scene, query: str) -> Arrival:
    """The view that an address means in this trace; never fails."""
    view = _with_spot(scene, _sane(scene, View.parse(query)))
    verb = parse_qs(query[:LONGEST].removeprefix("?")).get("go", [""])[-1]
    if verb in VERBS:
        view = _with_spot(scene, VERBS[verb](scene, view))
    span = scene.timeline.at(view.sel[0], view.sel[1] + scene.origin) if view.sel else None
    view = replace(view, step=_step_of(scene, view))
    return Arrival(replace(view, t=view.t or _range_of(scene, view, span)), span)


def _sane(scene: Scene, view: View) -> View:
    """Without what this trace does not have."""
    lanes = len(scene.timeline.lanes)
    states = {state.name for state in scene.timeline.states}
    return replace(
        view,
        t=_within(scene, view.t),
        mark=_within(scene, view.mark),
        sel=view.sel if view.sel and view.sel[0] < lanes and view.sel[1] <= scene.length else None,
        finding=view.finding if view.finding in scene.findings else None,
        step=view.step if scene.step_index(view.step) is not None else None,
        pin=tuple(lane for lane in view.pin if lane < lanes),
        hide=tuple(name for name in view.hide if name in states),
        fold=tuple(key for key in view.fold if key in scene.folds),
    )


def _within(scene: Scene, ends: Range | None) -> Range | None:
    if ends is None or ends[0] >= scene.length:
        return None
    return ends[0], min(ends[1], scene.length)


def _with_spot(scene: Scene, view: View) -> View:
    """With the lane and time of the finding selected, if nothing else is."""
    if view.finding is None or view.sel:
        return view
    finding = scene.findings[view.finding]
    lane, ends = scene.timeline.lane_of(finding), scene.finding_range(finding)
    return view if lane is None or ends is None else replace(view, sel=(lane, max(0, ends[0])))


def _step_of(scene: Scene, view: View) -> int | None:
    """The step that is asked for, else that of the finding, else that of the selection."""
    if view.step is not None:
        return view.step
    if view.finding and scene.step_index(scene.findings[view.finding].step) is not None:
        return scene.findings[view.finding].step
    index = scene.step_index_at(view.sel[1]) if view.sel else None
    return None if index is None else scene.steps[index]


def _range_of(scene: Scene, view: View, span: SpanView | None) -> Range:
    """The whole trace, or where the finding, the selection or the step is."""
    ends: Range | None = None
    if view.finding:
        ends = scene.finding_range(scene.findings[view.finding])
    elif span:
        ends = span.start_ns - scene.origin, span.end_ns - scene.origin
    elif view.step is not None:
        ends = scene.step_range(scene.step_index(view.step) or 0)
    return _framed(scene, ends) if ends else (0, scene.length)


def _framed(scene: Scene, ends: Range) -> Range:
    length = ends[1] - ends[0]
    wide = length / FINDING_SHARE if length else scene.length * MOMENT_SHARE
    half = max(1, round(wide / 2))
    middle = (ends[0] + ends[1]) // 2
    return _clamped(scene, Viewport(middle - half, middle + half))


def _clamped(scene: Scene, port: Viewport) -> Range:
    kept = port.clamp((0, scene.length))
    return kept.t0, min(kept.t1, scene.length)


def _showing(scene: Scene, view: View, ends: Range) -> Range | None:
    """The view's range if it shows these ends' beginning, else as wide a one around it."""
    if view.t is None or view.t[0] <= ends[0] < view.t[1]:
        return view.t
    return _clamped(scene, Viewport(*view.t).centre(ends[0]))


def _by_finding(by: int) -> Callable[[Scene, View], View]:
    def move(scene: Scene, view: View) -> View:
        keys = list(scene.findings)
        if not keys:
            return view
        here = keys.index(view.finding) if view.finding else (-1 if by > 0 else 0)
        key = keys[(here + by) % len(keys)]
        timed = scene.findings[key].ts_ns is not None
        return replace(view, finding=key, sel=None, step=None, t=None if timed else view.t)

    return move


def _by_step(by: int) -> Callable[[Scene, View], View]:
    def move(scene: Scene, view: View) -> View:
        if not scene.steps:
            return view
        middle = sum(view.t) // 2 if view.t else 0
        here = scene.step_index(_step_of(scene, view))
        if here is None:
            here = (scene.step_index_at(middle) or 0) - by
        index = min(max(here + by, 0), len(scene.steps) - 1)
        ends = scene.step_range(index)
        moved = replace(view, step=scene.steps[index], finding=None, sel=None)
        return replace(moved, t=_showing(scene, view, ends))

    return move


def _by_span(by: int) -> Callable[[Scene, View], View]:
    def move(scene: Scene, view: View) -> View:
        if view.sel is None:
            return view
        lane, at = view.sel[0], view.sel[1] + scene.origin
        here = scene.timeline.at(lane, at)
        seek = scene.timeline.next_span if by > 0 else scene.timeline.previous_span
        found = seek(lane, here.start_ns if here else at)
        if found is None:
            return view
        ends = found.start_ns - scene.origin, found.end_ns - scene.origin
        moved = replace(view, sel=(lane, max(0, ends[0])), finding=None, step=None)
        return replace(moved, t=_showing(scene, view, ends))

    return move


VERBS: dict[str, Callable[[Scene, View], View]] = {
    "next-finding": _by_finding(1),
    "previous-finding": _by_finding(-1),
    "next-step": _by_step(1),
    "previous-step": _by_step(-1),
    "next-span": _by_span(1),
    "previous-span": _by_span(-1),
}
