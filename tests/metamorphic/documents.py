"""Chrome JSON taken apart and written again, each number as its text."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

Event = dict[str, Any]
_MARK = "\ue000"
_WRITTEN = re.compile(r'"(?:\\ue000|\ue000)([^"]+)"')
WANTED = 600
"""So many events of a large file are enough."""


@dataclass(frozen=True, slots=True)
class Document:
    """The events of a profile, and what else stands beside them, before and after."""

    events: list[Event]
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)

    def copy(self) -> Document:
        """Another one, to be changed; all in it is JSON."""
        told = msgspec.json.encode((self.events, self.before, self.after))
        return Document(*msgspec.json.decode(told))

    def top(self) -> dict[str, Any]:
        """All of it as one object."""
        return {**self.before, "traceEvents": self.events, **self.after}


def loaded(path: Path) -> Document:
    """The first events of a file, with all names of tracks; numbers are as they were written."""
    raw = path.read_bytes()
    text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    top = json.loads(text, parse_float=number)
    events = top.pop("traceEvents")
    names = [event for event in events if event.get("ph") == "M"]
    others = [event for event in events if event.get("ph") != "M"]
    return Document([*names, *others[:WANTED]], top)


def number(text: str) -> str:
    """A number that is to be written as it is in `text`."""
    return _MARK + text


def written(value: object) -> str:
    """How a number of a document is written."""
    return value.removeprefix(_MARK) if isinstance(value, str) else str(value)


def exact(value: object) -> Decimal:
    """A number of a document."""
    return Decimal(written(value))


def text_of(value: object, **layout: Any) -> str:
    """JSON in the layout that is asked for."""
    return _WRITTEN.sub(r"\1", json.dumps(value, **layout))


def stretched(document: Document) -> Document:
    """The same, each event twice as far behind the first as it was, and twice as long."""
    placed = [event for event in document.events if "ts" in event and event.get("ph") != "M"]
    first = min(exact(event["ts"]) for event in placed)
    for event in placed:
        event["ts"] = number(f"{2 * exact(event['ts']) - first:f}")
        if "dur" in event:
            event["dur"] = number(f"{2 * exact(event['dur']):f}")
    return document


def each_time(document: Document, spelled: Callable[[Decimal], Any]) -> Document:
    """The same with each `ts` and `dur` spelled otherwise."""
    for event in document.events:
        for key in ("ts", "dur"):
            if key in event:
                event[key] = spelled(exact(event[key]))
    return document
