"""Which lane of B belongs to which of A, and the order in which both stand: A above B.

Lanes are paired by section, rank, group and name, requests by what `diff` pairs them with. Numbers
that an operating system makes up, as of a process, are not looked at where names differ in nothing
else. A lane that only one trace has stands alone and says so.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from stepscope.app.timeline.lanes.lane import Lane
from stepscope.app.timeline.lanes.sections import SECTIONS
from stepscope.app.timeline.model import Timeline

MADE_UP = re.compile(r"[0-9]{3,}")
Key = tuple[str, int, str, str]
Family = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Joined:
    """Lanes of both, A above B: of each the side (0 for A, 1 for B) and its number there."""

    lanes: tuple[Lane, ...]
    whose: tuple[tuple[int, int], ...]
    partners: Mapping[int, int]


def joined(a: Timeline, b: Timeline, names: Mapping[str, str]) -> Joined:
    """Pair the lanes of two timelines; `names` are A's requests by B's ids."""
    paired = _paired(a, b, names)
    lanes: list[Lane] = []
    whose: list[tuple[int, int]] = []
    partners: dict[int, int] = {}
    for ours, theirs in paired:
        firsts = []
        is_alone = ours is None or theirs is None
        for side, family, timeline in ((0, ours, a), (1, theirs, b)):
            firsts.append(len(lanes))
            for lane in family or ():
                own = timeline.lanes[lane]
                group = a.lanes[ours[0]].group if ours else own.group
                label = f"{'only ' * is_alone}{'AB'[side]} {own.label}".rstrip()
                lanes.append(replace(own, id=len(lanes), group=group, label=label))
                whose.append((side, lane))
        if not is_alone:
            partners |= {firsts[0]: firsts[1], firsts[1]: firsts[0]}
    return Joined(tuple(lanes), tuple(whose), partners)


def _paired(
    a: Timeline, b: Timeline, names: Mapping[str, str]
) -> Iterator[tuple[Family | None, Family | None]]:
    """Lanes with their sub-lanes by section, in the order of A; what only B has comes after."""
    left = dict(_families(a)), dict(_families(b))
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for keyed in (_named, _without_numbers):
        waiting: defaultdict[Key, list[int]] = defaultdict(list)
        for lane in left[1]:
            if lane not in taken:
                waiting[keyed(b, lane, names)].append(lane)
        for lane in left[0]:
            same = waiting.get(keyed(a, lane, {}), []) if lane not in partner else []
            if same:
                partner[lane] = same.pop(0)
                taken.add(partner[lane])
    order = (*SECTIONS, "counters")
    for section in order:
        yield from _of_section(section, a, b, left, partner, taken)


def _of_section(
    section: str, a: Timeline, b: Timeline, left: tuple[dict[int, Family], dict[int, Family]],
    partner: Mapping[int, int], taken: set[int],
) -> Iterator[tuple[Family | None, Family | None]]:  # fmt: skip
    """Groups stay together: what B alone has of a group of A stands behind the others of it."""
    ours = [lane for lane in left[0] if a.lanes[lane].section == section]
    alone = [lane for lane in left[1] if b.lanes[lane].section == section and lane not in taken]
    groups = dict.fromkeys([a.lanes[lane].group for lane in ours])
    for group in groups:
        for lane in (each for each in ours if a.lanes[each].group == group):
            yield left[0][lane], left[1][partner[lane]] if lane in partner else None
        for lane in (each for each in alone if b.lanes[each].group == group):
            yield None, left[1][lane]
    others = [lane for lane in alone if b.lanes[lane].group not in groups]
    yield from ((None, left[1][lane]) for lane in others)


def _families(timeline: Timeline) -> Iterator[tuple[int, Family]]:
    for lane in timeline.lanes:
        if not lane.depth:
            yield lane.id, timeline.family(lane.id)


def _named(timeline: Timeline, lane: int, names: Mapping[str, str]) -> Key:
    own = timeline.lanes[lane]
    who = timeline.request_of(lane) if own.section == "requests" else None
    label = names.get(who[1], who[1]) if who else own.label
    return own.section, own.rank, own.group, label


def _without_numbers(timeline: Timeline, lane: int, names: Mapping[str, str]) -> Key:
    section, rank, group, label = _named(timeline, lane, names)
    if section == "requests":  # another id is another request: `diff` has paired all that it can
        return section, rank, group, label
    return section, rank, MADE_UP.sub("*", group), MADE_UP.sub("*", label)


def made_of(lanes: Sequence[Lane]) -> str:
    """How many lanes of both there are that have a partner, and that stand alone, in words."""
    alone = {side: sum(each.label.startswith(f"only {side} ") for each in lanes) for side in "AB"}
    said = [f"only {side} has {number:,}" for side, number in alone.items() if number]
    return ", ".join(said) or "each lane is in both"
