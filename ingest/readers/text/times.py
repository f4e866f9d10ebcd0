"""The times at the head of a log's lines, as engines and those who forward their lines write them.

What a stamp leaves out (the year, the day) is taken from the time that it must be close to: that of
who forwarded the line, else of the line before. So a year or a day that ends in between is no
matter. Where nothing says more it is the year 2000, and its first day. A stamp without a zone is
read as UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from stepscope.ingest.times import SECOND

UNDATED = datetime(2000, 1, 1, tzinfo=UTC)
"""The year and the day of a time that says none, where no time is known that it is close to."""
HEAD_CHARS = 400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_CLOCK = r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)(?:[.,](?P<frac>\d{1,9}))?"
_ZONE = r"(?: ?(?P<zone>Z|[+-]\d\d:?\d\d)\b)?"
_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"(?<!\d)(?P<year>\d{{4}})[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T ]{_CLOCK}{_ZONE}",
        rf"(?<!\d)(?P<month>\d\d)[-/](?P<day>\d\d)[-/](?P<year>\d{{4}})[T -]{_CLOCK}",
        rf"(?<![\d/-])(?P<month>\d\d)-(?P<day>\d\d) {_CLOCK}",
        rf"\b(?P<name>{'|'.join(_MONTHS)}) {{1,2}}(?P<day>\d{{1,2}}) {_CLOCK}",
        rf"\[\w{{1,32}} {_CLOCK}[\] ]",
        rf"(?:^|\[){_CLOCK}[\] ]",
    )
)
_HOURS = re.compile(r"(?<!\d)\d\d:\d\d:\d\d")
_DATE_CHARS, _REST_CHARS = 40, 20  # how far around a clock its date, fraction and zone may reach
# llama.cpp: minutes, seconds, milliseconds and microseconds since its start.
_UPTIME = re.compile(r"(?:^|\s)(\d{1,6})\.([0-5]\d)\.(\d{3})\.(\d{3}) [A-Z] ")
_MICROS = re.compile(r"\d{16}")


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time, how fine it is, and whether it counts from 1970 or from the engine's start.

    One that is placed was not written, but follows from the lines before.
    """

    ns: int
    resolution_ns: int
    is_uptime: bool = False
    is_placed: bool = False
    has_year: bool = True


def stamp_of(text: str, near_ns: int | None = None) -> Stamp | None:
    """The last time that is written in `text`, which is the engine's own; None without any.

    `near_ns` is a time that it is close to, for what the stamp leaves out.
    """
    near = None if near_ns is None else _EPOCH + timedelta(microseconds=near_ns // 1000)
    last: Stamp | None = None
    for match in _found(text[:HEAD_CHARS]):
        if stamp := _stamp(match, near):
            last = replace(stamp, has_year=stamp.has_year or (last is not None and last.has_year))
            near = _EPOCH + timedelta(microseconds=stamp.ns // 1000)
    return last or _packed(text) or _uptime(text)


def _found(head: str) -> Iterator[re.Match[str]]:
    """What has the form of a time, looked for where a clock is."""
    last = 0
    for clock in _HOURS.finditer(head):
        begin, end = max(last, clock.start() - _DATE_CHARS), clock.end() + _REST_CHARS
        last = clock.end()
        for form in _FORMS:
            match = form.search(head, begin, end)
            if match and match.start("h") == clock.start():
                yield match


def _stamp(match: re.Match[str], near: datetime | None) -> Stamp | None:
    said = match.groupdict()
    fraction = said["frac"] or ""
    clock = {"hour": int(said["h"]), "minute": int(said["m"]), "second": int(said["s"])}
    days = [moment for date in _dates(said, near) if (moment := _moment(date, clock))]
    if not days:
        return None
    moment = min(days, key=lambda day: abs(day - (near or UNDATED))) - _offset(said.get("zone"))
    whole = (moment - _EPOCH) // timedelta(seconds=1)
    ns = whole * SECOND + int(fraction.ljust(9, "0"))
    return Stamp(ns, 10 ** (9 - len(fraction)), has_year=bool(said.get("year")))


def _dates(said: dict[str, str | None], near: datetime | None) -> Iterator[tuple[int, int, int]]:
    """The dates that may be meant."""
    name, month, day, year = (said.get(part) for part in ("name", "month", "day", "year"))
    number = _MONTHS.index(name) + 1 if name else int(month or 0)
    if day is None:
        for away in (-1, 0, 1) if near else (0,):
            date = (near or UNDATED) + timedelta(days=away)
            yield date.year, date.month, date.day
    else:
        years = [int(year)] if year else _years(near)
        yield from ((number_of_year, number, int(day)) for number_of_year in years)


def _years(near: datetime | None) -> Sequence[int]:
    return range(near.year - 1, near.year + 2) if near else [UNDATED.year]


def _moment(date: tuple[int, int, int], clock: dict[str, int]) -> datetime | None:
    year, month, day = date
    try:
        moment = datetime(year, month, day, **clock, tzinfo=UTC)
    except ValueError:
        return None
    return moment if 1970 <= year < 2200 else None


def _offset(zone: str | None) -> timedelta:
    if not zone or zone == "Z":
        return timedelta()
    away = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return -away if zone[0] == "-" else away


def _packed(text: str) -> Stamp | None:
    """Microseconds since 1970, as journald writes them beside a line."""
    return Stamp(int(text) * 1000, 1000) if _MICROS.fullmatch(text) else None


def _uptime(text: str) -> Stamp | None:
    if not (match := _UPTIME.search(text[:HEAD_CHARS])):
        return None
    minutes, seconds, millis, micros = map(int, match.groups())
    return Stamp(
        ((minutes * 60 + seconds) * 1_000_000 + millis * 1000 + micros) * 1000, 1000, is_uptime=True
    )
