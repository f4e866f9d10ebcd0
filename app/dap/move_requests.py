"""Requests that move the debugger, each by a rank's thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stepscope.app.dap.arguments import Line, OfThread, Target
from stepscope.app.dap.desk import Desk
from stepscope.app.dap.step_list import rank_of, step_at
from stepscope.app.debug.commands import run
from stepscope.app.debug.commands.where_it_is import hit_answer
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.stops.stop import Hit
from stepscope.app.present.plain_text import lines


def go_on(desk: Desk, given: OfThread) -> dict[str, Any]:
    """Go on to the next stop, else to the end."""
    _run(desk, given, Debugger.resume, "end")
    return {"allThreadsContinued": True}


def go_back(desk: Desk, given: OfThread) -> dict[str, Any]:
    """Go back to the last stop, else to the start."""
    _run(desk, given, Debugger.reverse, "start")
    return {}


def next_step(desk: Desk, given: OfThread) -> dict[str, Any]:
    """Go on by a step, by a change where instructions are asked for."""
    return _move(desk, given, "stepi" if given.granularity == "instruction" else "step")


def step_in(desk: Desk, given: OfThread) -> dict[str, Any]:
    """Go on by a change: a decision, an event, a block that changes hands."""
    return _move(desk, given, "stepi")


def step_back(desk: Desk, given: OfThread) -> dict[str, Any]:
    """Go back by a step, by a change where instructions are asked for."""
    return _move(desk, given, "backi" if given.granularity == "instruction" else "back")


def targets(desk: Desk, given: Line) -> dict[str, Any]:
    """Where a line leads: to its step."""
    line = given.line - desk.first_line + 1
    step = step_at(desk.debugger, rank_of(desk.debugger, given.source), line)
    return {"targets": [{"id": step, "label": f"step {step}", "line": given.line}]}


def goto(desk: Desk, given: Target) -> dict[str, Any]:
    """Go to a step."""
    desk.debugger.switch(given.thread_id - 1)
    desk.debugger.goto(str(given.target_id))
    desk.stopped("goto")
    return {}


def _move(desk: Desk, given: OfThread, command: str) -> dict[str, Any]:
    desk.debugger.switch(given.thread_id - 1)
    answer = run(desk.debugger, command)
    desk.stopped("step", lines(answer.blocks)[0])
    return {}


def _run(
    desk: Desk, given: OfThread, move: Callable[[Debugger], Hit | None], end: str
) -> None:  # fmt: skip
    debugger = desk.debugger
    debugger.switch(given.thread_id - 1)
    has_stops = any(stop.does != "trace" for stop in debugger.stops.values())
    if not has_stops:
        debugger.goto(end)
    hit = move(debugger) if has_stops else None
    if hit is None:
        desk.stopped("pause", f"no stop is hit up to the {end}")
        return
    told = " ".join(line.strip() for line in lines(hit_answer(debugger, hit).blocks))
    desk.stopped_at(hit, told)
