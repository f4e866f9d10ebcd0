"""Who is asked about, as it is written: `req-17`, `task 5`, `core 3`, `rank 1`."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import cast

from stepscope.app.debug.why.chain import Kind, Subject
from stepscope.app.debug.why.evidence import Evidence
from stepscope.ingest.errors import ConfigError

_NUMBERED = re.compile(r"(?P<kind>task|core|rank)[ :=-]?(?P<number>\d{1,18})")


def subject_of(told: Evidence, text: str) -> Subject:
    """Read who is meant; a request of that very name goes first.

    Raises ConfigError, naming near matches, for whom the trace does not have.
    """
    name = text.strip()
    if is_request(told, name):
        return Subject("request", name)
    if found := _NUMBERED.fullmatch(name):
        return _numbered(told, found["kind"], int(found["number"]))
    plain = name.removeprefix("request ").strip()
    if is_request(told, plain):
        return Subject("request", plain)
    requests = {*told.lifecycle.names(), *told.about_requests.names()}
    near = get_close_matches(plain, sorted(map(str, requests)), n=3)
    todo = f"did you mean {', '.join(near)}?" if near else "name a request of the trace"
    raise ConfigError(f"the trace has no request {plain!r}", todo=todo)


def number_of(text: str) -> tuple[str, int]:
    """The kind and number of who is called by a number; ("", 0) for a request."""
    found = _NUMBERED.fullmatch(text.strip())
    return (found["kind"], int(found["number"])) if found else ("", 0)


def _numbered(told: Evidence, kind: str, number: int) -> Subject:
    known = {"task": told.tasks.names, "core": told.cores, "rank": told.ranks}[kind]()
    if number not in known:
        few = ", ".join(map(str, known[:8]))
        todo = f"it has {few}{' …' if len(known) > 8 else ''}" if known else f"it has no {kind}s"
        raise ConfigError(f"the trace has no {kind} {number}", todo=todo)
    return Subject(cast("Kind", kind), str(number))


def is_request(told: Evidence, name: str) -> bool:
    """Whether any row is about a request of that name."""
    return name in told.lifecycle or name in told.about_requests
