"""Words for where something is: the lane, the step, the time."""

from __future__ import annotations

from stepscope.analyzers.findings.finding import Finding
from stepscope.app.timeline import Lane, Timeline
from stepscope.app.units import moment

RESOLUTION_NS = 1_000


def lane_name(lane: Lane) -> str:
    """A lane by group and label: `group 2 · AIV1`, `request 19`, `engine`."""
    if lane.section == "requests":
        return " · ".join(part for part in (lane.group, f"request {lane.label}") if part)
    return " · ".join(part for part in (lane.group, lane.label) if part)


def place(finding: Finding, timeline: Timeline) -> str:
    """Where a finding is, as its lane is called; its step when it is about no lane."""
    if finding.core is not None or finding.group is not None or finding.request is not None:
        lane = timeline.lane_of(finding)
        if lane is not None:
            return lane_name(timeline.lanes[lane])
    return "whole run" if finding.step is None else f"step {finding.step:,}"


def step_of(step: int | None, index: int | None, total: int) -> str:
    """A step by its number, and its place among all: `step 106, 1 of 140`; `step 1 of 140`."""
    if step is None or index is None:
        return "before the first step" if total else "no steps"
    place = f"{index + 1:,} of {total:,}"
    return f"step {place}" if step == index + 1 else f"step {step:,}, {place}"


def when(ts_ns: int | None, timeline: Timeline, resolution_ns: int = RESOLUTION_NS) -> str:
    """A time since the trace began; `—` when there is none."""
    return "—" if ts_ns is None else moment(ts_ns - timeline.bounds[0], resolution_ns)
