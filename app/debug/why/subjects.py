"""Who is asked about, as it is written: `req-17`, `task 5`, `core 3`, `rank 1`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from difflib import get_close_matches
from typing import cast

from stepscope.app.debug.why.chain import Kind, Subject
from stepscope.app.debug.why.evidence import Evidence
from stepscope.ingest.errors import ConfigError

NUM_NAMED = 8
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
    near = get_close_matches(plain, told.requests(), n=3)
    todo = f"did you mean {', '.join(near)}?" if near else subjects_of(told)
    raise ConfigError(f"the trace has no request {plain!r}", todo=todo)


def subjects_of(told: Evidence) -> str:
    """What `why` takes of this trace, and a command to go on with."""
    requests = told.requests()
    if not requests:
        return (
            f"it has {_named('rank', told.ranks())} and no request; "
            "`stepscope check TRACE` judges what it has"
        )
    return (
        f"it has {_named('rank', told.ranks())} and {_named('request', requests)}, "
        f"as in `stepscope why TRACE {shlex.quote(requests[0])}`"
    )


def _named(noun: str, names: Sequence[object]) -> str:
    more = f" and {len(names) - NUM_NAMED:,} more" if len(names) > NUM_NAMED else ""
    listed = ", ".join(map(str, names[:NUM_NAMED]))
    return f"{noun}{'s' if len(names) > 1 else ''} {listed}{more}"


def number_of(text: str) -> tuple[str, int]:
    """The kind and number of who is called by a number; ("", 0) for a request."""
    found = _NUMBERED.fullmatch(text.strip())
    return (found["kind"], int(found["number"])) if found else ("", 0)


def _numbered(told: Evidence, kind: str, number: int) -> Subject:
    known = {"task": told.tasks.names, "core": told.cores, "rank": told.ranks}[kind]()
    if number not in known:
        there = f"it has {_named(kind, known)}, " if known and kind != "rank" else ""
        raise ConfigError(f"the trace has no {kind} {number}", todo=there + subjects_of(told))
    return Subject(cast("Kind", kind), str(number))


def is_request(told: Evidence, name: str) -> bool:
    """Whether any row is about a request of that name."""
    return name in told.lifecycle or name in told.about_requests
