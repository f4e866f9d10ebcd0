"""The tree of tracks of a Perfetto file: a process per rank, below it what a track's name says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stepscope.ingest.writers.shown import SEPARATOR, order

_EXPLICIT = 3  # TrackDescriptor.child_ordering
_NEVER = 2  # TrackDescriptor.sibling_merge_behavior
Counter = tuple[str, str, str | None]
"""A counter's place, name and unit."""


class TrackTree:
    """Numbers for tracks whose names begin with their rank, in the order in which they are shown.

    `descriptors` holds the fields of the TrackDescriptor of each, parents first.
    """

    def __init__(
        self, ranks: Iterable[int], tracks: Iterable[str], counters: Iterable[Counter]
    ) -> None:
        self.descriptors: list[Mapping[str, Any]] = []
        self._uuids: dict[str | Counter, int] = {}
        for rank in ranks:
            self._track(f"rank {rank}")
        for track in sorted(tracks, key=order):
            self._track(track)
        for counter in sorted(counters, key=_order):
            self._counter(counter)

    def uuid(self, place: str | Counter) -> int:
        """The number of a track or counter."""
        return self._uuids[place]

    def _track(self, track: str) -> int:
        if track not in self._uuids:
            above, separator, name = track.rpartition(SEPARATOR)
            told = self._below(above, name) if separator else _process(track)
            self._add(track, {**told, "child_ordering": _EXPLICIT})
        return self._uuids[track]

    def _counter(self, counter: Counter) -> None:
        above, name, unit = counter
        told = {} if unit is None else {"unit_name": unit}
        self._add(counter, {**self._below(above, name), "counter": told})

    def _below(self, above: str, name: str) -> dict[str, Any]:
        return {
            "parent_uuid": self._track(above),
            "name": name,
            "sibling_order_rank": len(self._uuids),
            "sibling_merge_behavior": _NEVER,
        }

    def _add(self, place: str | Counter, told: Mapping[str, Any]) -> None:
        uuid = len(self._uuids) + 1
        self._uuids[place] = uuid
        self.descriptors.append({"uuid": uuid, **told})


def _order(counter: Counter) -> tuple[object, ...]:
    track, name, unit = counter
    return order(track), order(name), unit or "", unit is None


def _process(track: str) -> dict[str, Any]:
    """A rank's process; no process has the number 0, which is the kernel's."""
    return {"process": {"pid": int(track.removeprefix("rank ")) + 1, "process_name": track}}
