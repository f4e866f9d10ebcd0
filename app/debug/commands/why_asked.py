"""Who is asked about, and where: `req-17 @40%`, `req-17 not at 86`, `not at 86`, or nobody."""

from __future__ import annotations

import re
from typing import NamedTuple

from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.stops.whole_numbers import whole_number
from stepscope.app.debug.why import Evidence, is_request
from stepscope.ingest.errors import ConfigError

WHY = "why [WHO] [@POS]"
FORMS = (
    ("WHO", "a request, or task N, core N, rank N: why it waits here"),
    ("WHO @POS", "why it waited at another place, which goto takes: req-17 @40%, @86, @name"),
    ("[WHO] not at STEP", "why it was not in the batch of a step; without WHO, who was not"),
)
"""How it is written, and what that asks."""
_ELSEWHERE = re.compile(r"(?:(?P<who>.*?)\s+)??(?:@(?P<at>\S+)|not\s+(?:at|in)\s+(?P<step>.+))")


class Asked(NamedTuple):
    """Who is asked about, empty for all, and a place as goto takes it or a step, or neither."""

    who: str
    place: str = ""
    step: int | None = None


def asked_of(debugger: Debugger, words: str) -> Asked:
    """Read what stands behind `why`; a request of that very name goes first.

    Raises ConfigError for a step that is none.
    """
    found = _ELSEWHERE.fullmatch(words)
    if found is None or is_request(Evidence.of(debugger.session), words):
        return Asked(words)
    who, at, step = (found["who"] or "").strip(), found["at"], found["step"]
    if at is not None:
        return Asked(who, _place(debugger, at))
    if (number := whole_number(step.strip())) is None:
        raise ConfigError(f"{step.strip()}: not a step", todo="write it like why req-17 not at 86")
    return Asked(who, step=number)


def _place(debugger: Debugger, written: str) -> str:
    """A flag of that name, as in goto @name, else a place of another kind."""
    return f"@{written}" if written in debugger.flags.all else written.removeprefix("@")
