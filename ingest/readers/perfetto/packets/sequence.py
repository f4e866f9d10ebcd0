"""What packets of one sequence have in common, and later ones leave out."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from stepscope.ingest.readers.perfetto.packets.texts import text
from stepscope.ingest.readers.perfetto.packets.tracks import Key

NAMES, CATEGORIES, KEYS = "event_names", "event_categories", "debug_annotation_names"
STRINGS, CORRELATIONS = "debug_annotation_string_values", "correlation_id_str"
TYPES, LOCATIONS = "debug_annotation_value_type_names", "source_locations"
_TEXTS = (NAMES, CATEGORIES, KEYS, TYPES)
_BYTES = (STRINGS, CORRELATIONS)
_KEPT = (*_TEXTS, *_BYTES, LOCATIONS)


@dataclass(slots=True)
class Sequence:
    """Interned texts by kind and number, defaults, and where the sequence stands in time.

    `track` is the uuid that events have by default; `thread` stands for it in older files.
    """

    number: int
    track: int | None = None
    thread: Key | None = None
    clock_id: int = 0
    counters: tuple[int, ...] = ()
    double_counters: tuple[int, ...] = ()
    last_us: int = 0
    interned: dict[str, dict[int, Any]] = field(default_factory=lambda: defaultdict(dict))

    def clear(self) -> None:
        """Forget all: the packets that follow say it anew."""
        self.interned.clear()
        self.track = None
        self.clock_id = 0
        self.counters = self.double_counters = ()

    def default_track(self) -> Key | None:
        """The track of events that name none, None where there is none."""
        return self.thread if self.track is None else self.track

    def intern(self, entries: Any) -> None:
        """Take over texts and their numbers."""
        for kind in _KEPT:
            known = self.interned[kind]
            for entry in getattr(entries, kind):
                known[entry.iid] = _text(kind, entry)

    def says_otherwise(self, entries: Any) -> bool:
        """Whether a number is another text's so far."""
        return any(
            self.interned[kind].get(entry.iid, told) != told
            for kind in _KEPT
            for entry in getattr(entries, kind)
            for told in (_text(kind, entry),)
        )

    def set_defaults(self, defaults: Any) -> None:
        """Take over what packets that follow mean where they say nothing."""
        events = defaults.track_event_defaults
        if events.HasField("track_uuid"):
            self.track = events.track_uuid
        self.counters = tuple(events.extra_counter_track_uuids)
        self.double_counters = tuple(events.extra_double_counter_track_uuids)
        self.clock_id = defaults.timestamp_clock_id


def _text(kind: str, entry: Any) -> Any:
    if kind in _TEXTS:
        return text(entry.name)
    return text(entry.str) if kind in _BYTES else _location(entry)


def _location(entry: Any) -> dict[str, object]:
    names = ("file_name", "function_name", "line_number")
    said = {name: getattr(entry, name) for name in names if entry.HasField(name)}
    return {name: value if isinstance(value, int) else text(value) for name, value in said.items()}
