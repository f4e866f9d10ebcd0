"""What is said of a selection over two traces: of its own, and what the other has there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stepscope.app.paired.delta_rows import row
from stepscope.app.paired.found_in_both import PairedFinding
from stepscope.app.paired.joined_timeline import JoinedTimeline
from stepscope.app.paired.leads import led
from stepscope.app.paired.pair import Pair
from stepscope.app.palette import NOT_BUSY
from stepscope.app.present.blocks import Block, Fact, Heading, Paragraph, Table, Title, Tone
from stepscope.app.present.details import selection_blocks
from stepscope.app.present.spans.flag_words import flag_blocks
from stepscope.app.present.where import lane_name, when
from stepscope.app.timeline.area.selection import Selection
from stepscope.app.units import duration

MOST_LANES = 40


def told(pair: Pair, selection: Selection, timeline: JoinedTimeline) -> list[Block]:
    """All about what is selected; empty where nothing is."""
    noted: list[Block] = [*flag_blocks(selection.flags)]
    if selection.mark:
        return [*noted, *_marked(selection, timeline)]
    side = _side(selection, timeline)
    if side is None:
        return noted
    own = _own(selection, timeline, side)
    blocks = selection_blocks(own, timeline.both[side], pair.traces[side])
    if not blocks:
        return noted
    name = pair.difference.a if side == 0 else pair.difference.b
    head = [Title(f"{'AB'[side]}  {name}", Tone.MUTED)]
    return [*noted, *head, *led(blocks, timeline, side), *_other(selection, timeline, side)]


def _side(selection: Selection, timeline: JoinedTimeline) -> int | None:
    if isinstance(selection.finding, PairedFinding):
        return selection.finding.side
    if selection.span:
        return timeline.joined.whose[selection.span.lane][0]
    return timeline.joined.whose[selection.point[0]][0] if selection.point else None


def _own(selection: Selection, timeline: JoinedTimeline, side: int) -> Selection:
    """The selection as the trace has it that it is in."""
    finding, span, point = selection.finding, selection.span, selection.point
    return replace(
        selection,
        finding=finding.own if isinstance(finding, PairedFinding) else finding,
        span=timeline.own_span(span) if span else None,
        lanes=(),
        pick=None,
        flags=(),
        point=point and (timeline.joined.whose[point[0]][1], timeline.own_time(side, point[1])),
    )


def _other(selection: Selection, timeline: JoinedTimeline, side: int) -> Iterator[Block]:
    """What the paired lane of the other trace shows at the same place."""
    lane = selection.span.lane if selection.span else None
    if lane is None or selection.finding:
        return
    other = 1 - side
    yield Heading(f"in {'AB'[other]}, at the same place")
    partner = timeline.joined.partners.get(_head(timeline, lane))
    if partner is None:
        yield Paragraph(f"{'AB'[other]} has no such lane.", Tone.MUTED)
        return
    assert selection.span is not None
    at_ns = selection.span.start_ns
    anchored = timeline.alignment.anchored
    if anchored and not anchored[0] <= at_ns <= anchored[1]:
        yield Paragraph("No step is in both here: time goes on as it is.", Tone.MUTED)
    yield Fact("time", (when(timeline.own_time(other, at_ns), timeline.both[other], 1),))
    there = timeline.at(partner, at_ns)
    if there is None or not there.start_ns <= at_ns < there.end_ns:
        yield Paragraph("Nothing ran there.", Tone.MUTED)
        return
    own = timeline.own_span(there)
    yield Fact("span", (own.label or timeline.called(own.state),))
    ours = timeline.own_span(selection.span)
    a, b = (ours, own) if side == 0 else (own, ours)
    takes = row("_ns", a.end_ns - a.start_ns, b.end_ns - b.start_ns)
    yield Table(
        ("takes", "A", "B", "B − A"), (("", *takes),), to_right=("A", "B", "B − A"), is_ruled=False
    )


def _head(timeline: JoinedTimeline, lane: int) -> int:
    """The lane that a sub-lane belongs to."""
    while timeline.lanes[lane].depth:
        lane -= 1
    return lane


def _marked(selection: Selection, timeline: JoinedTimeline) -> Iterator[Block]:
    """A marked range: how long it is in each trace, and how long lanes were busy in it."""
    assert selection.mark
    start, end = selection.mark
    windows = [timeline.own_window(side, start, max(end, start + 1)) for side in (0, 1)]
    yield Title("a marked range of both")
    for side, ends in enumerate(windows):
        first, last = (when(each, timeline.both[side], 1) for each in ends)
        yield Fact(f"{'AB'[side]}", (f"{first} to {last}: {duration(ends[1] - ends[0])}",))
    rows = [*_busy(selection.lanes, timeline, start, max(end, start + 1))]
    columns = ("busy in it", "A", "B", "B − A")
    yield Table(
        columns, tuple(rows[:MOST_LANES]), to_right=columns[1:], is_ruled=False,
        num_more=max(len(rows) - MOST_LANES, 0),
    )  # fmt: skip


def _busy(
    lanes: Sequence[int], timeline: JoinedTimeline, start: int, end: int
) -> Iterator[tuple[str, ...]]:
    chosen = dict.fromkeys(_head(timeline, lane) for lane in lanes)
    done: set[int] = set()
    for lane in chosen:
        if lane in done or timeline.lanes[lane].kind == "counter":
            continue
        partner = timeline.joined.partners.get(lane)
        both: list[int | None] = [None, None]
        for each in (lane, partner):
            if each is not None:
                done.add(each)
                both[timeline.joined.whose[each][0]] = _of_family(each, timeline, start, end)
        name = lane_name(timeline.lanes[lane])
        bare = (
            name
            if partner is None
            else name.replace(" A ", " ").replace(" B ", " ").removeprefix("A ")
        )
        yield (bare, *row("_ns", *both))


def _of_family(lane: int, timeline: JoinedTimeline, start: int, end: int) -> int:
    sums = (timeline.sums(each, start, end) for each in timeline.family(lane))
    return sum(each.ns for found in sums for state, each in found.items() if state not in NOT_BUSY)
