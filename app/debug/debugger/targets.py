"""Where to go, as it is written: `86`, `8.66s`, `40%`, `@name`, `#1234`, `start`, `end`."""

from __future__ import annotations

import re
from typing import NamedTuple

from stepscope.app.units import UNITS
from stepscope.ingest.errors import ConfigError

FORMS = "86, 8.66s, 40%, @name, #1234, start or end"
MOST_DIGITS = 18
"""Of a number that a column may hold."""
_TIME = re.compile(r"(?P<number>-?\d[\d,]*(?:\.\d+)?)\s*(?P<unit>s|ms|us|µs|ns)")
_OF_RANK = re.compile(r"(?P<place>\S.*?)\s+of\s+rank\s+(?P<rank>\d{1,9})")
_NS = {**{unit: ns for ns, unit in UNITS}, "us": 1_000}


class Target(NamedTuple):
    """A place as it was written; one of these is not None."""

    step: int | None = None
    after_ns: int | None = None
    share: float | None = None
    flag: str | None = None
    seq: int | None = None


def rank_of(text: str) -> tuple[str, int | None]:
    """A place without ` of rank 1` behind it, and that rank; None where it names none."""
    found = _OF_RANK.fullmatch(text.strip())
    return (found["place"], int(found["rank"])) if found else (text, None)


def target_of(text: str) -> Target:
    """Read where to go: a step, a time since the trace began, a share of it, a flag, a change.

    Raises ConfigError naming the forms that there are.
    """
    text = text.strip()
    if text.startswith("@"):
        return Target(flag=text[1:])
    if re.search(rf"\d{{{MOST_DIGITS + 1}}}", text.replace(",", "")):
        raise ConfigError(f"{text[:MOST_DIGITS]}...: no place has so many digits")
    if text in {"start", "end"}:
        return Target(share=float(text == "end"))
    if found := _TIME.fullmatch(text):
        return Target(after_ns=round(float(found["number"].replace(",", "")) * _NS[found["unit"]]))
    if re.fullmatch(r"-?\d+", text):
        return Target(step=int(text))
    if re.fullmatch(r"#\d+", text):
        return Target(seq=int(text[1:]))
    if found := re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text):
        return Target(share=min(float(found[1]) / 100, 1.0))
    raise ConfigError(f"{text or 'nothing'} is no place", todo=f"write it like {FORMS}")
