"""Names and numbers in a log's lines."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

LAST_COUNT = (1 << 31) - 1
_LAST_EXACT = 1 << 53
"""Up to here every whole number is a float of its own."""
_NUMBER = re.compile(
    r"(-?\d{1,15}(?:\.\d{1,18})?(?:[eE][+-]?\d{1,3})?)(?:\s?(%|[A-Za-z][\w/]{0,31}))?"
)
_UNIT_IN_NAME = re.compile(r"(.{1,64}) \(([\w/]{1,16})\)")


@dataclass(frozen=True, slots=True)
class Number:
    """A number with the unit that stands behind it, or in brackets behind its name."""

    value: float
    unit: str | None

    @property
    def count(self) -> int | None:
        """The number as a count of things; None where it cannot be one."""
        is_count = self.value.is_integer() and 0 <= self.value <= _LAST_EXACT
        return int(self.value) if is_count else None


def fields(text: str, sign: str, *, is_whole: bool = True) -> dict[str, str]:
    """Pairs out of `name: value, name: value`, where `sign` stands between the two.

    Of `name: value, value` the second is `name 2`. The last pair of a line that is cut off is left
    out: its value may be half of one.
    """
    parts = text.split(", ")
    said: dict[str, str] = {}
    last, num = "", 1
    for part in parts if is_whole else parts[:-1]:
        name, found, value = part.partition(sign)
        last, num = (name.strip(), 1) if found else (last, num + 1)
        said[last if found else f"{last} {num}"] = (value if found else part).strip().rstrip(",.")
    return said


def samples(said: dict[str, str]) -> dict[str, Number]:
    """Those of the pairs that are a name and a number."""
    found = {name: number(value) for name, value in said.items() if name}
    return dict(named(name, value) for name, value in found.items() if value)


def number(text: str) -> Number | None:
    """A number and its unit out of `37.1%` or `12.5 tokens/s`; None for anything else."""
    match = _NUMBER.fullmatch(text)
    value = float(match[1]) if match else math.inf
    return Number(value, match[2]) if match and math.isfinite(value) else None


def named(name: str, found: Number) -> tuple[str, Number]:
    """A name without the unit in brackets behind it, and the number with that unit."""
    if match := _UNIT_IN_NAME.fullmatch(name):
        return match[1], Number(found.value, found.unit or match[2])
    return name, found


def whole(value: object, last: int = LAST_COUNT) -> int | None:
    """A count out of JSON, also one written as `5.0`; None where it does not fit its column."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= last
    return value if fits and isinstance(value, int) else None


def millis(value: object) -> int | None:
    """Milliseconds as nanoseconds; None for what is not a length of time, or is over a year."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return round(value * 1e6) if math.isfinite(value) and 0 <= value < 4e10 else None
