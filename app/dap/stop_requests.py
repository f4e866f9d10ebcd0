"""Requests that say where to stop; each takes the place of all that were said so before."""

from __future__ import annotations

from functools import partial
from typing import Any

from stepscope.app.dap.arguments import (
    Breakpoint,
    Data,
    DataBreakpoints,
    Filters,
    FunctionBreakpoints,
    Named,
    Source,
    SourceBreakpoints,
)
from stepscope.app.dap.desk import Desk
from stepscope.app.dap.policy_source import decided_at
from stepscope.app.dap.shown_state import standing_at
from stepscope.app.dap.step_list import rank_of, step_at
from stepscope.app.debug.stops.tables import MEANINGS
from stepscope.app.debug.stops.whole_numbers import whole_number
from stepscope.ingest.errors import ConfigError

SEVERITIES = ("error", "warning", "info")


def at_lines(desk: Desk, given: SourceBreakpoints) -> dict[str, Any]:
    """Stop at steps, where a source lists them; in a file where decisions were taken there."""
    group = f"source {given.source.source_reference} {given.source.path}"
    wanted = [partial(_at_line, desk, given.source, each) for each in given.breakpoints]
    return {"breakpoints": desk.replace(group, wanted, "break")}


def at_names(desk: Desk, given: FunctionBreakpoints) -> dict[str, Any]:
    """Stop at what `break` takes: `preempt req-17`, `finding KVB003`, `step 67`, a condition."""
    wanted = [partial(_named, each) for each in given.breakpoints]
    return {"breakpoints": desk.replace("functions", wanted, "break")}


def about_data(desk: Desk, given: Data) -> dict[str, Any]:
    """Tell how something is watched: `block 5`, `slot 2`, or a variable of the state."""
    name, at = given.name.strip(), None
    if given.variables_reference:
        name, at = desk.shown.watched(given.variables_reference, name)
    try:
        # It is of the rank whose state shows it, whichever is stood at now or later.
        with standing_at(desk.debugger, at or desk.debugger.position):
            name = desk.debugger.find(name, "watch").wanted
    except ConfigError as error:
        return {"dataId": None, "description": str(error)}
    return {"dataId": name, "description": name, "accessTypes": ["write"]}


def at_data(desk: Desk, given: DataBreakpoints) -> dict[str, Any]:
    """Stop where something changes hands."""
    wanted = [partial(str, each.data_id) for each in given.breakpoints]
    return {"breakpoints": desk.replace("data", wanted, "watch")}


def at_findings(desk: Desk, given: Filters) -> dict[str, Any]:
    """Stop where rules found something of these severities."""
    wanted = [partial(_of_severity, each) for each in given.filters]
    return {"breakpoints": desk.replace("findings", wanted, "break")}


def _at_line(desk: Desk, source: Source, at: Breakpoint) -> str:
    line = at.line - desk.first_line + 1
    if source.path and not source.source_reference:
        wanted = decided_at(desk.debugger, source.path, line)
    else:
        rank = rank_of(desk.debugger, source)
        step = step_at(desk.debugger, rank, line)
        wanted = f"steps: rank = {rank} and step = {step}"
    return f"{wanted} and ({at.condition})" if at.condition else wanted


def _named(given: Named) -> str:
    name = given.name.strip()
    word, _, number = name.partition(" ")
    if word == "step" and (step := whole_number(number)) is not None:
        name = f"steps: step = {step}"
    if not given.condition:
        return name
    if name in MEANINGS:
        return f"{name}: {given.condition}"
    if name.partition(":")[0].strip() in MEANINGS:
        return f"{name} and ({given.condition})"
    raise ConfigError(f"{name} takes no condition", todo="give one to a table, such as lifecycle")


def _of_severity(severity: str) -> str:
    if severity not in SEVERITIES:
        raise ConfigError(f"no severity {severity!r}", todo=f"use {', '.join(SEVERITIES)}")
    return f"findings: severity = '{severity}'"
