"""What a page over two traces looks at: both, as one lies on the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from stepscope.app.paired.alignments import Alignment
from stepscope.app.paired.flags_of_both import FlagsOfBoth
from stepscope.app.paired.joined_timeline import JoinedTimeline
from stepscope.app.paired.pair import Pair
from stepscope.app.paired.selected import told
from stepscope.app.paired.standing import Standing
from stepscope.app.palette import DIVERGED_GLYPH
from stepscope.app.present.about import identity
from stepscope.app.present.blocks import Block, Fact, Heading, Paragraph, Title
from stepscope.app.present.tab import Tab
from stepscope.app.timeline import LoadOverTime, Timeline
from stepscope.app.timeline.area.selection import Selection
from stepscope.app.timeline.keymap import FLAGS, KEYMAP, PAIRED, Key
from stepscope.app.timeline.moves import MOVES
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.web import panes
from stepscope.app.web.loaded import LOAD_PIXELS, LoadedTrace, keyed
from stepscope.app.web.view import View

PIXELS_PER_TICK = 110
"""As the page has them on its ruler of A."""


class LoadedPair(LoadedTrace):
    """Two traces under an alignment; `key` spells it, and whether A and B are exchanged."""

    def __init__(self, pair: Pair, alignment: Alignment, key: str, *, is_first: bool) -> None:
        self.pair, self.alignment = pair, alignment
        a = pair.sides[0]
        found = pair.findings(alignment)
        super().__init__(a.trace, replace(pair.results[0], findings=found), pair.slo)
        self.timeline: Timeline = pair.timeline(alignment)
        self.origin, last = self.timeline.bounds
        self.length = last - self.origin
        self.composition = a.composition
        self.findings = keyed(found)
        self.one_has_a_clock = any(each.manifest.clock.has_times for each in pair.traces)
        self._key = key
        self.align = None if is_first else key

    @property
    def has_clock(self) -> bool:
        """Whether either has one."""
        return self.one_has_a_clock

    @property
    def joined(self) -> JoinedTimeline:
        """The lanes of both."""
        return self.pair.timeline(self.alignment)

    @property
    def key(self) -> int | str:
        """The alignment, as an address spells it."""
        return self._key

    @property
    def is_one(self) -> bool:
        """Two."""
        return False

    @property
    def is_whole(self) -> bool:
        """Nobody steps through two at a time, asks what if of them, or looks for conditions."""
        return False

    @property
    def name(self) -> str:
        """A and B."""
        return f"A {self.pair.difference.a} | B {self.pair.difference.b}"

    @property
    def panes(self) -> Sequence[Tab]:
        """What differs."""
        return tuple(panes.OF_TWO.values())

    @property
    def keys(self) -> Sequence[Key]:
        """Those of the timeline, of two, and from flag to flag."""
        return (*KEYMAP, *PAIRED, *(key for key in FLAGS if key.action in MOVES))

    @cached_property
    def placed_flags(self) -> FlagsOfBoth:
        """Those of both."""
        return self.pair.flags(self.alignment)

    @property
    def moves(self) -> Mapping[str, Callable[[Navigator], object]]:
        """Those of the timeline, and to where the two diverge."""
        return {**MOVES, "divergence": self._diverge}

    def _diverge(self, view: Navigator) -> None:
        Standing(self.pair, self.alignment, view).diverged()

    @property
    def diverged(self) -> tuple[int, int] | None:
        """When each diverges, from the origin."""
        there = self.pair.diverged_on_a(self.alignment)
        return None if there is None else (there[0] - self.origin, there[1] - self.origin)

    @property
    def diverged_places(self) -> dict[str, Any] | None:
        """Where on the minimap, in percent; both lie there unless it is aligned by step."""
        if self.diverged is None:
            return None
        places = [round(100 * each / self.length, 3) for each in dict.fromkeys(self.diverged)]
        return {
            "told": "", "places": places, "glyph": DIVERGED_GLYPH, "go": "divergence",
            "says": self.pair.said,
        }  # fmt: skip

    def times_beside(self, t0: int, t1: int, width: int) -> dict[str, Any] | None:
        """Times of B, and where they lie, from the origin."""
        step, last, own, on_a = self.joined.ruler_of_b(t0, t1, max(width // PIXELS_PER_TICK, 1))
        at = [each - self.origin for each in on_a]
        return {"step": step, "last": last, "at": at, "own": own}

    @cached_property
    def loads(self) -> tuple[LoadOverTime, ...]:
        """A above B."""
        return self.joined.load_of(0, LOAD_PIXELS), self.joined.load_of(1, LOAD_PIXELS)

    def coloured(self, view: View) -> Timeline:
        """By state alone."""
        del view
        return self.timeline

    def describe(self, selection: Selection, timeline: Timeline) -> list[Block]:
        """What is said of a selection in its own trace, and what the other has there."""
        del timeline
        return told(self.pair, selection, self.joined)

    def about(self) -> list[Block]:
        """What the two are."""
        blocks: list[Block] = [Title("two traces"), Paragraph(self.pair.said)]
        for letter, trace in zip("AB", self.pair.traces, strict=True):
            blocks.append(Heading(letter, trace.name))
            blocks += [Fact(name, (text,)) for name, text in identity(trace)]
        return [
            *blocks,
            Paragraph("D goes to where they diverge, t lays B on A otherwise, X exchanges them."),
        ]
