"""What ends a request: the token that says so, or its cap; and how it ended."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from stepscope.engine.requests.request import Request

EOS, CAP = "eos", "cap"


class Ended(NamedTuple):
    """How a request ended: the event finish, reject or abort, when, and why if that is told."""

    request: Request
    event: str
    end_ns: int
    cause: str | None = None


def finish_reason(request: Request, faults: Set[str]) -> str | None:
    """Return why the token sampled last was the request's last one, None if it was not.

    A token that is the end and at the cap was the end: nobody need ask for more.
    """
    is_end = request.has_eos and "token-after-eos" not in faults
    is_cap = request.num_generated >= request.max_tokens + ("token-past-cap" in faults)
    if is_end and not (is_cap and "cap-before-eos" in faults):
        return EOS
    return CAP if is_cap else None
