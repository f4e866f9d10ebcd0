"""Where what is said of one trace leads on the timeline of both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from stepscope.app.paired.joined_timeline import JoinedTimeline
from stepscope.app.present.blocks import (
    AtFinding,
    AtSpan,
    AtStep,
    Block,
    Fact,
    Links,
    RulePage,
    Runs,
    Table,
    Target,
)


def led(blocks: Iterable[Block], timeline: JoinedTimeline, side: int) -> Iterator[Block]:
    """The blocks with lanes and times of both; to a request's page or a state nothing leads."""
    for block in blocks:
        match block:
            case Links():
                choices = (
                    replace(each, to=there)
                    for each in block.choices
                    if (there := _there(each.to, timeline, side))
                )
                if kept := tuple(choices):
                    yield Links(kept)
            case Fact() | Runs():
                yield replace(block, to=_there(block.to, timeline, side))
            case Table():
                leads = tuple(_there(each, timeline, side) for each in block.leads)
                yield replace(block, leads=leads)
            case _:
                yield block


def _there(to: Target | None, timeline: JoinedTimeline, side: int) -> Target | None:
    match to:
        case RulePage() | AtFinding():
            return to
        case AtStep() if side == 0:
            return to
        case AtSpan(lane, since_ns):
            place = timeline.place(side, lane)
            at_ns = timeline.on_a(side, timeline.both[side].bounds[0] + since_ns)
            return None if place is None else AtSpan(place, max(0, at_ns - timeline.bounds[0]))
    return None
