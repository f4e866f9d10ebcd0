"""The most that is read of a file, so that a hostile or absurd one costs no more than a large one.

What is read of a stream before a limit is met is kept, and the report says which limit it was.
Each can be set: `stepscope info --max depth=64 --max ratio=5000 trace.json.gz`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields

from stepscope.ingest.errors import ConfigError

_SIZE = re.compile(r"(\d{1,18})\s*(?:([kmgt])(?:i?b)?)?", re.IGNORECASE)
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


@dataclass(frozen=True, slots=True)
class Limits:
    """The most of everything; each is an option by its name.

    ratio       bytes that come out of a compressed byte, past the first 64 MiB
    inflated    bytes that come out of a compressed file
    whole       bytes of a file that can only be read whole (swimlanes)
    event       bytes of one event, and of what stands before and behind all events
    message     bytes of one message of a capture
    text        bytes of one text: a name, the arguments of an event as JSON
    line        bytes of one line of a log
    depth       brackets within brackets in the arguments of an event; beyond 1,000 none is read
    events      events of a trace
    rows        rows that the lines of a log or the messages of a capture make
    tracks      threads, streams and other tracks, and engines that write into one log
    """

    ratio: int = 500
    inflated: int = 16 << 30
    whole: int = 64 << 20
    event: int = 64 << 20
    message: int = 4 << 20
    text: int = 1 << 20
    line: int = 1 << 20
    depth: int = 512
    events: int = 20_000_000
    rows: int = 4_000_000
    tracks: int = 16_384


DEFAULTS = Limits()
NAMES = tuple(field.name for field in fields(Limits))


def raised_by(name: str) -> str:
    """Say how a limit is raised, as a part of a message."""
    return f"--max {name}=N raises it"


def limits_of(settings: Iterable[str]) -> Limits:
    """Make limits of texts like `depth=64` or `inflated=2GiB`; raises `ConfigError`."""
    return Limits(**dict(map(_setting, settings)))


def size_of(text: str) -> int | None:
    """Read a number like 1000, 1_000 or 64MiB; None where it is none."""
    found = _SIZE.fullmatch(text.strip().replace("_", "").replace(",", ""))
    return int(found[1]) << _UNITS[(found[2] or "").lower()] if found else None


def _setting(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    if name not in NAMES:
        raise ConfigError(f"no limit is called {name!r}", todo=f"limits: {', '.join(NAMES)}")
    if not (number := size_of(value)):
        raise ConfigError(f"{text!r} is not NAME=N", todo="N is a number from 1, or like 64MiB")
    return name, number
