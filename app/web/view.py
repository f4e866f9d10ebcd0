"""The view that an address spells: range, pins, selection, finding, filter, tab.

`?t=8100000..8250000&sel=5@8214000&finding=COR001.2&pin=4,5&hide=decode&tab=step`
`?break=preempt%20req-17&step=66&seq=4711`

Times are ns from the first moment of the trace. Whatever is missing, misspelt or names something
that the trace does not have is left out, and the rest still holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from stepscope.app.timeline.area.selection import GROUPINGS, Pick
from stepscope.app.web import panes
from stepscope.ingest.schema import BY_NAME

LONGEST = 20_000
"""Characters of an address that are looked at."""
LATEST = 2**53
"""Times beyond it (104 days) are not exact in a browser."""

MOST_LANES = 100_000
"""Lanes that an address can name."""

Range = tuple[int, int]
Point = tuple[int, int]


@dataclass(frozen=True, slots=True)
class View:
    """What a page shows; None and empty are the defaults and are not spelled.

    `sel` is a lane and a time in it at which a span is selected, `at` such a place where none is;
    `begun` is where a mark was begun that has no end yet. `who` is asked
    about in the step: a request, or as in `task 5`. `sort` is a column, with `-` before it
    for the largest first.

    `collapse` names what is otherwise than at first: collapsed, or expanded where it was collapsed.

    `align` is how two traces lie on each other, where that is not as at first.

    `request` is the one whose page is open, that of `rank`.
    `lanes` are those of the mark, where they are not its section's; `by` is what it is summed by,
    and `pick` the row of its sums whose spans are outlined. `path` is 1 where the path to the
    selected span is shown, and `colours` is given where they are not as at first.

    `stop` is what is looked for, `break` in an address, in the words of the prompt's `break`, and
    `value` what is drawn over the run, in those of its `value`. `what` is to be different in a run
    with changes, in the words of `stepscope replay`, or `?` where that is to be listed.
    Who stands between steps stands behind the change `seq`, or at the time `ts`; `step` is then the
    last whose batch was formed. `rank` is where one stands, where that is not the usual one.
    """

    t: Range | None = None
    sel: Point | None = None
    at: Point | None = None
    finding: str | None = None
    rank: int | None = None
    step: int | None = None
    seq: int | None = None
    ts: int | None = None
    stop: str | None = None
    value: str | None = None
    what: str | None = None
    who: str | None = None
    request: str | None = None
    mark: Range | None = None
    begun: int | None = None
    lanes: tuple[int, ...] = ()
    by: str | None = None
    pick: Pick | None = None
    path: int | None = None
    colours: str | None = None
    pin: tuple[int, ...] = ()
    hide: tuple[str, ...] = ()
    collapse: tuple[str, ...] = ()
    tab: str = panes.OPEN_FIRST
    table: str | None = None
    sort: str | None = None
    page: int = 1
    sql: str | None = None
    explain: str | None = None
    align: str | None = None

    @property
    def point(self) -> Point | None:
        """The lane and time of the cursor, if it was put anywhere."""
        return self.sel or self.at

    @classmethod
    def parse(cls, query: str) -> View:
        """Read an address's query, with or without its question mark; never fails."""
        found: dict[str, Any] = {}
        for spelled, text in parse_qsl(query[:LONGEST].removeprefix("?")):
            name = _READ_AS.get(spelled, spelled)
            value = _READ[name](text) if name in _READ else None
            if value is not None:
                found[name] = value
        return cls(**found)

    def spell(self) -> str:
        """Give the query that reads as this view, without its question mark."""
        plain = View()
        named = ((each.name, getattr(self, each.name)) for each in fields(View))
        spelled = [
            (_SPELLED.get(name, name), _WRITE.get(name, str)(value))
            for name, value in named
            if value != getattr(plain, name)
        ]
        return urlencode(spelled, safe=",@/", quote_via=quote)

    def link(self, **changes: Any) -> str:
        """An `href` that lays changes over the view that the reader then has."""
        spelled = {
            _SPELLED.get(name, name): "" if value is None else _WRITE.get(name, str)(value)
            for name, value in changes.items()
        }
        return "?" + urlencode(spelled, safe=",@/", quote_via=quote)


def _number(text: str) -> int | None:
    # isdecimal() alone would let other scripts' digits in, which int() reads and nobody writes.
    if not (text.isascii() and text.isdecimal()) or len(text) > 16:
        return None
    number = int(text)
    return number if number <= LATEST else None


def _range(text: str) -> Range | None:
    first, dots, last = text.partition("..")
    start, end = _number(first), _number(last)
    if not dots or start is None or end is None or start >= end:
        return None
    return start, end


def _point(text: str) -> Point | None:
    lane, _, time = text.partition("@")
    numbers = _number(lane), _number(time)
    return None if numbers[0] is None or numbers[1] is None else (numbers[0], numbers[1])


def _lanes(text: str) -> tuple[int, ...]:
    """Lanes by their numbers, `3-7,9`, as far as there can be so many."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        low, high = _number(first), _number(last if dash else first)
        if low is not None and high is not None and high - low + len(found) < MOST_LANES:
            found += range(low, high + 1)
    return tuple(sorted(set(found)))


def _ranges(lanes: tuple[int, ...]) -> str:
    """The lanes as `_lanes` reads them."""
    spelled: list[list[int]] = []
    for lane in lanes:
        if spelled and lane == spelled[-1][-1] + 1:
            spelled[-1][1:] = [lane]
        else:
            spelled.append([lane])
    return ",".join("-".join(map(str, ends)) for ends in spelled)


def _pick(text: str) -> Pick | None:
    by, colon, name = text.partition(":")
    return Pick(by, name) if colon and name and by in GROUPINGS else None


def _numbers(text: str) -> tuple[int, ...]:
    numbers = (_number(part) for part in text.split(","))
    return tuple(dict.fromkeys(number for number in numbers if number is not None))


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(unquote(part) for part in text.split(",") if part))


def _one_of(*known: str) -> Callable[[str], str | None]:
    return lambda text: text if text in known else None


def _text(text: str) -> str | None:
    return text or None


_READ: Mapping[str, Callable[[str], object]] = {
    "t": _range,
    "sel": _point,
    "at": _point,
    "finding": _text,
    "rank": _number,
    "step": _number,
    "seq": _number,
    "ts": _number,
    "stop": _text,
    "value": _text,
    "what": _text,
    "who": _text,
    "request": _text,
    "mark": _range,
    "begun": _number,
    "lanes": lambda text: _lanes(text) or None,
    "by": _one_of(*GROUPINGS),
    "pick": _pick,
    "path": lambda text: 1 if text == "1" else None,
    "colours": _one_of("name", "state"),
    "pin": _numbers,
    "hide": _names,
    "collapse": _names,
    "tab": lambda text: text if any(text == each.name for each in panes.PANES) else None,
    "table": _one_of(*BY_NAME),
    "sort": _text,
    "page": lambda text: _number(text) or None,
    "sql": _text,
    "explain": _text,
    "align": _text,
}
_SPELLED = {"stop": "break"}
"""What an address calls a part of the view, where that is no name in Python."""
_READ_AS = {**dict.fromkeys(_SPELLED, ""), **{text: name for name, text in _SPELLED.items()}}
_WRITE: Mapping[str, Callable[[Any], str]] = {
    "t": lambda ends: f"{ends[0]}..{ends[1]}",
    "sel": lambda point: f"{point[0]}@{point[1]}",
    "at": lambda point: f"{point[0]}@{point[1]}",
    "mark": lambda ends: f"{ends[0]}..{ends[1]}",
    "lanes": _ranges,
    "pick": lambda pick: f"{pick.by}:{pick.text}",
    "pin": lambda lanes: ",".join(map(str, lanes)),
    "hide": lambda names: ",".join(quote(name, safe="") for name in names),
    "collapse": lambda names: ",".join(quote(name, safe="") for name in names),
}
