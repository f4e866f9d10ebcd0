"""A reader of Chrome JSON in plain Python, slow and simple, to hold ours against.

It knows the format's description and docs/formats.md, and nothing of how ours reads. Numbers stay
as they are written until they are needed; tracks are named by nobody: (pid, tid) tells them apart.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any, NamedTuple

Place = tuple[str, str]
"""Process and thread as they are written."""
SLICES = {"X": "slice", "i": "instant", "I": "instant", "P": "instant", "R": "instant"}
FLOW_ENDS = {"s": "start", "t": "step", "f": "finish"}
FOREVER = 1 << 63


class Number(NamedTuple):
    """A number as it is written."""

    text: str

    @property
    def value(self) -> Decimal:
        return Decimal(self.text)


@dataclass(slots=True)
class Slice:
    """A slice or an instant; `inside` is the slice around it, its lane counts from 0."""

    place: Place
    name: str
    category: str | None
    form: str
    ts_ns: int
    dur_ns: int | None
    args: object
    correlation: int | None
    lane: int = 0
    inside: Slice | None = None

    @property
    def end_ns(self) -> int:
        """When it ends; without a duration it takes one nanosecond, without an end for ever."""
        return FOREVER if self.dur_ns is None else self.ts_ns + max(self.dur_ns, 1)

    def told(self) -> tuple[Any, ...]:
        """What is compared: all but the place, which is compared track by track."""
        around = self.inside and (self.inside.ts_ns, self.inside.dur_ns, self.inside.name)
        what = (self.name, self.category, self.form, self.correlation)
        return (self.ts_ns, self.dur_ns, what, hashed(self.args), around)


@dataclass(slots=True)
class PlainFile:
    """Slices by place and lane, ends of flows, and samples of counters."""

    slices: list[Slice] = field(default_factory=list)
    flows: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    counters: Counter[tuple[Any, ...]] = field(default_factory=Counter)

    def tracks(self) -> Counter[frozenset[Any]]:
        """Each lane as the multiset of what is on it."""
        found: dict[tuple[Place, int], Counter[Any]] = {}
        for each in self.slices:
            found.setdefault((each.place, each.lane), Counter())[each.told()] += 1
        return Counter(frozenset(counted.items()) for counted in found.values())


def hashed(value: object) -> object:
    """A decoded value as one that can be counted; the order of keys does not matter."""
    if isinstance(value, dict):
        return ("object", frozenset((key, hashed(each)) for key, each in value.items()))
    if isinstance(value, list):
        return ("array", tuple(map(hashed, value)))
    return value


def decoded(text: str | bytes) -> Any:
    """JSON with numbers as they are written."""
    return json.loads(text, parse_int=Number, parse_float=Number, strict=False)


def read(file: Path) -> PlainFile:
    """Read a whole file, plain or packed with gzip."""
    content = file.read_bytes()
    found = decoded(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
    events = found["traceEvents"] if isinstance(found, dict) else found
    plain = PlainFile()
    open_on: dict[Place, list[Slice]] = {}
    for event in sorted(events, key=_time):  # a stable sort: at one time as in the file
        _put(plain, open_on, event)
    _correlate(plain.slices)
    _nest(plain.slices)
    return plain


def _time(event: dict[str, Any]) -> Decimal:
    ts = event.get("ts")
    return ts.value if isinstance(ts, Number) else Decimal(0)


def _put(plain: PlainFile, open_on: dict[Place, list[Slice]], event: dict[str, Any]) -> None:
    ph, ts_ns = event.get("ph"), _ns(event.get("ts"))
    if ph == "M" or ts_ns is None:
        return
    if ph in SLICES or ph == "B":
        made = _slice(event, ts_ns)
        plain.slices.append(made)
        if ph == "B":
            open_on.setdefault(made.place, []).append(made)
    elif ph == "E" and (begun := _begun(open_on.get(_place(event), []), event.get("name"))):
        begun.form, begun.dur_ns = "slice", ts_ns - begun.ts_ns
        begun.args = _both(begun.args, event.get("args"))
    elif ph in FLOW_ENDS:
        number = event.get("id")
        text = number.text if isinstance(number, Number) else str(number)
        plain.flows[text, event.get("name"), event.get("cat"), FLOW_ENDS[ph], ts_ns] += 1
    elif ph == "C":
        for key, value in event["args"].items():
            name = event["name"] if key in ("value", "") else f"{event['name']} {key}"
            plain.counters[ts_ns, name, float(value.text)] += 1


def _slice(event: dict[str, Any], ts_ns: int) -> Slice:
    form = SLICES.get(event["ph"], "unfinished")
    dur_ns = _ns(event.get("dur")) if event["ph"] == "X" else None
    return Slice(
        _place(event), event.get("name") or "(no name)", event.get("cat"), form, ts_ns,
        dur_ns, event.get("args"), None,
    )  # fmt: skip


def _begun(opened: list[Slice], name: str | None) -> Slice | None:
    """The latest slice that is open, of that name where the end has one that is not empty."""
    name = name or None
    if not any(name in (None, each.name) for each in opened):
        return None
    while opened:
        begun = opened.pop()
        if name in (None, begun.name):
            return begun
    return None


def _both(begun: object, ended: object) -> object:
    """The arguments of both ends of a slice."""
    if isinstance(begun, dict) and isinstance(ended, dict):
        return begun | ended
    return ended if begun is None else begun


def _place(event: dict[str, Any]) -> Place:
    pid, tid = (_text(event.get(key)) for key in ("pid", "tid"))
    return pid, tid


def _text(value: object) -> str:
    return value.text if isinstance(value, Number) else "" if value is None else str(value)


def _ns(microseconds: object) -> int | None:
    if not isinstance(microseconds, Number):
        return None
    return int((microseconds.value * 1000).quantize(Decimal(1), ROUND_HALF_UP))


def _correlate(slices: Iterable[Slice]) -> None:
    """Take `correlation` of the args; "External id" where no event of the file has the former."""
    args = [each.args for each in slices if isinstance(each.args, dict)]
    key = "correlation" if any("correlation" in each for each in args) else "External id"
    for each in slices:
        found = each.args.get(key) if isinstance(each.args, dict) else None
        each.correlation = int(found.value) if isinstance(found, Number) else None


def _nest(slices: Iterable[Slice]) -> None:
    """Give each slice the first lane in which it nests, and the slice around it there."""
    open_on: dict[Place, list[list[Slice]]] = {}
    timed = [each for each in slices if each.form != "instant"]
    for each in sorted(timed, key=lambda each: (each.ts_ns, -each.end_ns)):
        lanes = open_on.setdefault(each.place, [])
        each.lane = _lane_for(each, lanes)
        if each.lane == len(lanes):
            lanes.append([])
        opened = lanes[each.lane]
        each.inside = opened[-1] if opened else None
        opened.append(each)


def _lane_for(each: Slice, lanes: list[list[Slice]]) -> int:
    for number, opened in enumerate(lanes):
        while opened and opened[-1].end_ns <= each.ts_ns:
            opened.pop()
        if not opened or opened[-1].end_ns >= each.end_ns:
            return number
    return len(lanes)
