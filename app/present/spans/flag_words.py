"""What is said of flags in both fronts and in a report: where they are, and how one is typed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepscope.app.kept.flags import Flag, Flags, line_of
from stepscope.app.palette import FLAG_GLYPH
from stepscope.app.present.blocks import Block, Paragraph, Title
from stepscope.app.present.where import lane_name, when
from stepscope.app.printable import plain
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.flags.flag_at import FlagAt, lane_key

NO_FLAGS = "No flag was put on this trace."
NO_FLAGS_OF_TWO = "No flag was put on either trace."
PUT_ALONE = "Flags are put and changed where one of the two is open alone"
HOW = "y puts one at what is selected, and a double click on the ruler at a time."
FORM = "A note. @name before it gives the flag that name; else it has a number."
GONE = "An empty line takes the flag away."
PLACEHOLDER = "a note"


def place_of(flag: FlagAt, timeline: Timeline) -> str:
    """When a flag is, and in which lane."""
    lane = "" if flag.lane is None else lane_name(timeline.lanes[flag.lane])
    return " · ".join(part for part in (when(flag.ts_ns, timeline), lane) if part)


def place_for(flag: Flag, timeline: Timeline) -> str:
    """The same of a flag that is to be put."""
    lanes = timeline.lanes if flag.lane else ()
    lane = next((each.id for each in lanes if lane_key(each) == flag.lane), None)
    step = "" if flag.step is None else f"step {flag.step:,}"
    place = place_of(FlagAt("", "", flag.ts_ns, lane), timeline)
    return " · ".join(part for part in (place, step) if part)


def told(flag: FlagAt) -> str:
    """A flag in a line: `@storm: all wait here`."""
    return plain(f"@{flag.name}" + f": {flag.note}" * bool(flag.note))


def flag_blocks(flags: Sequence[FlagAt]) -> Iterator[Block]:
    """Flags where one is, with what is noted there."""
    for each in flags:
        yield Title(f"{FLAG_GLYPH} @{each.name}")
        if each.note:
            yield Paragraph(each.note)


def first_line(flags: Flags, was: FlagAt | None) -> str:
    """What stands in the line at first: the flag that is there, or the name of a new one."""
    return line_of(was.name, was.note) if was else line_of(flags.next_name, "")


def came_of(name: str | None, was: str) -> str:
    """What is said once a line was taken; empty where nothing was done."""
    if name is None:
        return f"flag @{was} is gone" if was else ""
    return f"flag @{name} was {'changed' if was else 'put'}"


def rows_of(flags: tuple[FlagAt, ...], timeline: Timeline) -> Iterator[tuple[str, str, str, str]]:
    """Each flag as cells: its name, its note, its lane and its time. Text is as it was typed."""
    for each in flags:
        lane = "" if each.lane is None else lane_name(timeline.lanes[each.lane])
        yield f"@{each.name}", each.note, lane, when(each.ts_ns, timeline)
