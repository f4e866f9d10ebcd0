"""How a run ended, in the words of a scenario's table: one definition for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.engine.requests.finishing import Ended

SERVED = "served"
DEVICE = "device: "


def outcome(ended: Iterable[Ended], num_requests: int, stopped: str | None = None) -> str:
    """Return how a run of `num_requests` ended: `served` where all of them were.

    Otherwise it is why the run was `stopped` before its end, or how many were served; where that is
    nobody, also what ended the first of them. Who got no token was not served, whatever is told.
    """
    if stopped:
        return in_short(stopped)
    if not num_requests:
        return "nobody asked"
    ends = list(ended)
    num_served = sum(each.event == "finish" and each.request.num_generated > 0 for each in ends)
    if num_served == num_requests:
        return SERVED
    if num_served:
        return f"{num_served:,} of {num_requests:,} served"
    cause = next((each.cause for each in ends if each.cause), None)
    return f"nobody served: {cause}" if cause else "nobody served"


def in_short(stopped: str) -> str:
    """Return why a run was stopped, as far as it fits a table; a device that was is stalled."""
    why = stopped.partition(";")[0]
    return f"stalled: {why.removeprefix(DEVICE)}" if why.startswith(DEVICE) else why
