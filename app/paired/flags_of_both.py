"""The flags of two traces, each on its own lane, and at its time as that lies on A's."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.app.paired.joined_timeline import JoinedTimeline
from stepscope.app.timeline.flags.flag_at import FlagAt, FlagsOnLanes


@dataclass(frozen=True, slots=True)
class PairedFlag(FlagAt):
    """A flag on the time of A, of A (0) or of B (1), which its name says: `A:storm`."""

    side: int = 0


class FlagsOfBoth:
    """What was put on either trace, as it is kept by now; the last answer is remembered."""

    def __init__(self, sides: tuple[FlagsOnLanes, FlagsOnLanes], timeline: JoinedTimeline) -> None:
        self.sides, self.timeline = sides, timeline
        self._of: tuple[tuple[FlagAt, ...], ...] = ()
        self._placed: tuple[FlagAt, ...] = ()
        self.version = 0
        """How often other flags were found; whoever asks has to look first."""

    @property
    def now(self) -> tuple[FlagAt, ...]:
        """By time, then by name; none of a trace of which they cannot be read."""
        kept = tuple(each.now for each in self.sides)
        if len(kept) != len(self._of) or any(
            one is not other for one, other in zip(kept, self._of, strict=True)
        ):
            placed = (self._on_a(side, flag) for side in (0, 1) for flag in kept[side])
            self._placed = tuple(sorted(placed, key=lambda each: (each.ts_ns, each.name)))
            self._of = kept
            self.version += 1
        return self._placed

    def _on_a(self, side: int, flag: FlagAt) -> PairedFlag:
        return PairedFlag(
            f"{'AB'[side]}:{flag.name}", flag.note, self.timeline.on_a(side, flag.ts_ns),
            self.timeline.place(side, flag.lane), side,
        )  # fmt: skip

    @property
    def failed(self) -> str:
        """Why those of a trace cannot be read; empty where they can."""
        return "; ".join(each.failed for each in self.sides if each.failed)


def side_of(flag: FlagAt) -> int:
    """Of which of two traces a flag is."""
    return flag.side if isinstance(flag, PairedFlag) else 0
