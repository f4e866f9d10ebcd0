"""What a click on something that leads somewhere runs."""

from __future__ import annotations

from stepscope.app.present.blocks import (
    AtChange,
    AtFinding,
    AtRequest,
    AtSpan,
    AtStep,
    AtTime,
    Follow,
    RulePage,
    Target,
)  # fmt: skip


def action_of(to: Target | None) -> str:
    """The action; empty where it leads nowhere."""
    action = ""
    match to:
        case RulePage(code):
            action = f"app.explain({code!r})"
        case AtStep(step, rank):
            action = f"app.at_step({step}, {rank})"
        case AtChange(seq, rank=rank):
            action = f"app.at_change({seq}, {rank})"
        case AtFinding(index):
            action = f"app.jump({index})"
        case Follow(index):
            action = f"focused.follow({index})"
        case AtRequest(rank, request):
            action = f"app.request({rank}, {request!r})"
        case AtSpan(lane, since_ns):
            action = f"app.at_span({lane}, {since_ns})"
        case AtTime(since_ns, at):
            action = f"app.at_time({since_ns}, {at})"
        case None:
            action = ""
    return action
