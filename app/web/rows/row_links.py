"""Links from the cells of a row to the places that they name, at the zoom at which one is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stepscope.app.present.blocks import AtStep, AtTime, Target
from stepscope.app.timeline import Viewport
from stepscope.app.web.components import href_of
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.view import View

Links = Callable[[Mapping[str, Any]], Mapping[str, str]]


def row_links(loaded: LoadedTrace, view: View) -> Links:
    """What gives the links of a row by its columns."""

    def links(row: Mapping[str, Any]) -> Mapping[str, str]:
        return {name: _href(loaded, view, to) for name, to in loaded.leads.of(row).items()}

    return links


def _href(loaded: LoadedTrace, view: View, to: Target) -> str:
    if isinstance(to, AtStep) and to.rank is not None:
        return ""  # the step's pane is opened at the steps of the usual rank
    if not isinstance(to, AtTime):
        return href_of(to, list(loaded.findings))
    now = Viewport(*(view.t or (0, loaded.length)))
    there = now.centre(to.since_ns).clamp((0, loaded.length))
    usual = view.point[0] if view.point else 0 if loaded.timeline.lanes else None
    lane = usual if to.lane is None else to.lane
    if to.lane is not None and loaded.timeline.at(to.lane, to.since_ns + loaded.origin):
        return View().link(sel=(to.lane, to.since_ns))
    at = None if lane is None else (lane, to.since_ns)
    return View().link(t=(there.t0, min(there.t1, loaded.length)), at=at, sel=None, finding=None,
                       step=None, seq=None, ts=None)  # fmt: skip
