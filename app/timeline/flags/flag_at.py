"""Flags where they stand on a timeline: in a lane that it has, at a time of its clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stepscope.app.kept.flags import Flags, Named
from stepscope.app.timeline.lanes.lane import Lane
from stepscope.ingest.errors import ConfigError

LaneKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class FlagAt:
    """A flag on a timeline; `lane` is None where it is of none, or of one that is not there."""

    name: str
    note: str
    ts_ns: int
    lane: int | None

    def is_at(self, ts_ns: int, lane: int | None) -> bool:
        """Whether it stands where a cursor is; one of no lane stands in all of them."""
        return self.ts_ns == ts_ns and self.lane in (None, lane)


class PlacedFlags(Protocol):
    """Flags where they stand on the lanes that are looked at."""

    version: int

    @property
    def now(self) -> tuple[FlagAt, ...]:
        """Those that there are by now: the same tuple until there are others."""

    @property
    def failed(self) -> str:
        """Why they cannot be read; empty where they can."""


class FlagsOnLanes:
    """The flags of a trace as they are kept by now, on lanes; the last answer is remembered."""

    def __init__(self, flags: Flags, lanes: Sequence[Lane]) -> None:
        self.flags = flags
        self.lanes = lanes
        self._of: Named | None = None
        self._placed: tuple[FlagAt, ...] = ()
        self.version = 0
        """How often other flags were found; whoever asks has to look first."""

    @property
    def now(self) -> tuple[FlagAt, ...]:
        """By time, then by name; none where they cannot be read."""
        try:
            kept = self.flags.all
        except ConfigError:
            return ()
        if kept is not self._of:
            self._of, self._placed = kept, flags_at(kept, self.lanes)
            self.version += 1
        return self._placed

    @property
    def failed(self) -> str:
        """Why they cannot be read; empty where they can."""
        try:
            _ = self.flags.all
        except ConfigError as error:
            return str(error)
        return ""


def flags_at(kept: Named, lanes: Sequence[Lane]) -> tuple[FlagAt, ...]:
    """The flags on lanes, by time, then by name; of lanes that are called alike on the first."""
    wanted = {flag.lane for flag in kept.values() if flag.lane}
    places: dict[LaneKey, int] = {}
    for lane in lanes if wanted else ():
        if (key := lane_key(lane)) in wanted:
            places.setdefault(key, lane.id)
    placed = (
        FlagAt(name, flag.note, flag.ts_ns, places.get(flag.lane) if flag.lane else None)
        for name, flag in kept.items()
    )
    return tuple(sorted(placed, key=lambda each: (each.ts_ns, each.name)))


def lane_key(lane: Lane) -> LaneKey:
    """What a lane is known by, whatever its number is: more lanes come as a trace is recorded."""
    return lane.section, lane.group, lane.label
