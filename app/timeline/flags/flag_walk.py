"""Going from flag to flag, and where a new one is put: at what is selected, else at the cursor."""

from __future__ import annotations

from stepscope.app.kept.flags import Flag
from stepscope.app.timeline.flags.flag_at import FlagAt, lane_key
from stepscope.app.timeline.navigator import Navigator


def flag_here(view: Navigator) -> Flag:
    """A flag at the finding, else at the begin of the span that is selected, else at the cursor.

    Where the cursor cannot be seen, and nothing was chosen, it is in the middle of what is shown.
    """
    found, span, point = view.selection.finding, view.span, view.selection.point
    if found is not None and found.ts_ns is not None:
        return _flag(view, found.ts_ns, view.timeline.lane_of(found))
    if span is not None:
        return _flag(view, span.start_ns, span.lane)
    if point is not None:
        return _flag(view, point[1], point[0])
    shown = view.viewport
    is_seen = shown.t0 <= view.cursor_ns < shown.t1
    return _flag(view, view.cursor_ns if is_seen else shown.centre_ns, None)


def flag_at_time(view: Navigator, ts_ns: int) -> Flag:
    """A flag at a time alone, within the trace."""
    first, last = view.timeline.bounds
    return _flag(view, min(max(ts_ns, first), last - 1), None)


def flag_of_request(view: Navigator, rank: int, request: str) -> Flag | None:
    """A flag where the lane of a request begins; None where it was never in a batch."""
    lane = view.timeline.lane_of_request(rank, request)
    first = None if lane is None else view.timeline.next_span(lane, view.timeline.bounds[0] - 1)
    return None if first is None else _flag(view, first.start_ns, lane)


def flag_there(view: Navigator, flag: Flag) -> FlagAt | None:
    """The flag that stands already where one is to be put, or at the cursor: it is changed."""
    return next(
        (
            each
            for each in view.flags
            if (each.ts_ns == flag.ts_ns and _is_of(view, each, flag))
            or each.is_at(view.cursor_ns, view.lane)
        ),
        None,
    )


def next_flag(view: Navigator, by: int) -> bool:
    """Go to the flag after (1) or before (-1) the cursor; False where there is none."""
    here = [at for at, each in enumerate(view.flags) if each.is_at(view.cursor_ns, view.lane)]
    if here:
        at = here[-1] + 1 if by > 0 else here[0] - 1
    elif by > 0:
        at = sum(each.ts_ns < view.cursor_ns for each in view.flags)
    else:
        at = sum(each.ts_ns <= view.cursor_ns for each in view.flags) - 1
    if not 0 <= at < len(view.flags):
        return False
    go_to_flag(view, view.flags[at])
    return True


def go_to_flag(view: Navigator, flag: FlagAt) -> None:
    """Put the cursor where a flag stands, in its lane, and see to it that it shows."""
    view.move_to(flag.ts_ns)
    if flag.lane is not None:
        view.expand_to(flag.lane)
        view.select(flag.lane, flag.ts_ns)


def _is_of(view: Navigator, flag: FlagAt, new: Flag) -> bool:
    lane = None if flag.lane is None else lane_key(view.timeline.lanes[flag.lane])
    return lane is None or lane == new.lane


def _flag(view: Navigator, ts_ns: int, lane: int | None) -> Flag:
    return Flag(ts_ns, lane=None if lane is None else lane_key(view.timeline.lanes[lane]))
