"""Words for where something is: the lane, the step, the time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.analyzers.findings.finding import Finding
from stepscope.app.printable import plain
from stepscope.app.units import count, moment

if TYPE_CHECKING:  # a check says where findings are, and draws no timeline
    from stepscope.app.timeline import Composition, Lane, Timeline

RESOLUTION_NS = 1_000


def lane_name(lane: Lane) -> str:
    """A lane by group and label: `group 2 · AIV1`, `request 19`, `engine`."""
    if lane.section == "requests":
        return " · ".join(part for part in (lane.group, f"request {lane.label}") if part)
    if lane.section == "waiting queue":
        return " · ".join(part for part in (lane.group, f"queue {lane.label}") if part)
    return " · ".join(part for part in (lane.group, lane.label) if part)


def where(finding: Finding, start_ns: int = 0) -> str:
    """Where a finding is, in a line that is safe to print: `group 2 · step 3 · 8.214 ms`."""
    return plain(" · ".join(where_parts(finding, start_ns)))


def where_parts(finding: Finding, start_ns: int = 0, lane: str = "") -> Iterator[str]:
    """Where a finding is, a part at a time: `group 2`, `step 3`, `8.214 ms` since `start_ns`.

    What it is about goes by the name of its `lane` where there is one. Text is as recorded.
    """
    about = [lane] if lane else [*_about(finding)]
    if finding.rank and f"rank {finding.rank}" not in lane.split(" · "):
        yield f"rank {finding.rank}"
    yield from about
    if finding.step is not None:
        yield f"step {finding.step:,}"
    elif not about:
        yield "whole run"
    if finding.ts_ns is not None:
        yield moment(finding.ts_ns - start_ns, RESOLUTION_NS)


def place(finding: Finding, timeline: Timeline) -> str:
    """Where a finding is, in short: its lane; its step when it is about no lane."""
    if lane := lane_of(finding, timeline):
        return lane
    step = "whole run" if finding.step is None else f"step {finding.step:,}"
    return f"rank {finding.rank} · {step}" if finding.rank else step


def lane_of(finding: Finding, timeline: Timeline) -> str:
    """What the lane is called that a finding is about; empty where it is about none."""
    lane = timeline.lane_of(finding) if any(_about(finding)) else None
    return "" if lane is None else lane_name(timeline.lanes[lane])


def _about(finding: Finding) -> Iterator[str]:
    for name in ("request", "group", "core"):
        if (value := getattr(finding, name)) is not None:
            yield f"{name} {value}"


def step_of(step: int | None, index: int | None, total: int) -> str:
    """A step by its number, and its place among all: `step 106, 1 of 140`; `step 1 of 140`."""
    if step is None or index is None:
        return "before the first step" if total else "no steps"
    place = f"{index + 1:,} of {total:,}"
    return f"step {place}" if step == index + 1 else f"step {step:,}, {place}"


def of_rank(steps: Composition) -> str:
    """Whose steps they are, where several ranks have some: ` of rank 0`."""
    return f" of rank {steps.rank}" if steps.num_ranks > 1 else ""


def num_steps(of: Composition) -> str:
    """How many steps are shown; none is no count, as the trace may only not tell of them."""
    return f"{count(len(of))}{of_rank(of)}" if len(of) else "none to show"


def when(ts_ns: int | None, timeline: Timeline, resolution_ns: int = RESOLUTION_NS) -> str:
    """A time since the trace began; `—` when there is none."""
    return "—" if ts_ns is None else moment(ts_ns - timeline.bounds[0], resolution_ns)
