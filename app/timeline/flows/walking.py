"""Going along arrows: to what led to the selected span, and to what it led to."""

from __future__ import annotations

from stepscope.app.timeline.navigator import Navigator


def follow(view: Navigator, by: int) -> bool:
    """Select what ended last before the span (-1), or begins first after it (1), by an arrow.

    The zoom stays; what hides the lane is expanded. False where no arrow is.
    """
    if view.span is None:
        return False
    flows = view.timeline.flows
    seek = flows.following if by > 0 else flows.preceding
    found = seek(view.span, 1)
    if not found:
        return False
    view.go_to(found[0].span)
    return True
