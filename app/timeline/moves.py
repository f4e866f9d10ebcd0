"""What the actions of the keymap do to what is looked at, by name."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.app.timeline.area.which_lanes import next_lanes
from stepscope.app.timeline.flags.flag_walk import next_flag
from stepscope.app.timeline.flows.walking import follow
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.timeline.viewport import PAN, ZOOM


def widen_area(view: Navigator) -> None:
    """Sum the mark over the section's lanes, then over the cursor's alone, then over all."""
    view.marked_lanes = next_lanes(view.timeline, view.lane, view.marked_lanes)
    view.pick = None


def toggle_colours(view: Navigator) -> None:
    """Colour by name what was coloured by state, or the other way round."""
    view.timeline = view.timeline.coloured("state" if view.timeline.colours == "name" else "name")
    if view.span:
        view.span = view.timeline.at(view.span.lane, view.span.start_ns)


MOVES: dict[str, Callable[[Navigator], object]] = {
    "zoom-in": lambda view: view.zoom(ZOOM),
    "zoom-out": lambda view: view.zoom(1 / ZOOM),
    "pan-left": lambda view: view.pan(-PAN),
    "pan-right": lambda view: view.pan(PAN),
    "lane-down": lambda view: view.move_lane(1),
    "lane-up": lambda view: view.move_lane(-1),
    "next-span": lambda view: view.step_span(1),
    "previous-span": lambda view: view.step_span(-1),
    "focus": Navigator.centre_then_fit,
    "mark": Navigator.mark_here,
    "mark-view": Navigator.mark_view,
    "widen-area": widen_area,
    "preceding": lambda view: follow(view, -1),
    "following": lambda view: follow(view, 1),
    "path": Navigator.toggle_path,
    "colours": toggle_colours,
    "pin": Navigator.toggle_pin,
    "collapse-section": Navigator.collapse_section,
    "collapse-group": Navigator.collapse_group,
    "start": lambda view: view.move_to(view.timeline.bounds[0]),
    "end": lambda view: view.move_to(view.timeline.bounds[1] - 1),
    "whole": Navigator.whole,
    "next-finding": lambda view: view.next_finding(1),
    "previous-finding": lambda view: view.next_finding(-1),
    "next-step": lambda view: view.next_step(1),
    "previous-step": lambda view: view.next_step(-1),
    "next-flag": lambda view: next_flag(view, 1),
    "previous-flag": lambda view: next_flag(view, -1),
    "clear": Navigator.clear,
}
"""What the actions of the keymap do, but for what opens something: search, help."""
