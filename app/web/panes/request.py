"""The drawer's request: its life in true order, what it got, and why it waited each time."""

from __future__ import annotations

from collections.abc import Iterator

from dash import html
from dash.development.base_component import Component

from stepscope.analyzers.findings.wording import times
from stepscope.app.present.inspected.request_page import NO_REQUESTS, request_blocks
from stepscope.app.printable import plain
from stepscope.app.timeline.lanes.lane import natural
from stepscope.app.units import count
from stepscope.app.web.components import components
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.view import View

MOST_NAMES = 400
Who = tuple[int, str]


def request_pane(loaded: LoadedTrace, view: View) -> Component:
    """The page of the request in question; where there is none, all of them to choose from."""
    who = _asked(loaded, view)
    if who is None:
        return html.Div(list(_every(loaded, view)))
    return _page(loaded, view, who)


def _page(loaded: LoadedTrace, view: View, who: Who) -> Component:
    blocks = request_blocks(loaded.trace, loaded.blamed, who, loaded.origin, loaded.slo)
    return html.Div(components(blocks, list(_ways(loaded, view, who))), className="request")


def _asked(loaded: LoadedTrace, view: View) -> Who | None:
    """The request that the address names, else that of the finding or lane that is selected."""
    if view.request is not None:
        usual = loaded.timeline.walked_rank or 0  # which an address does not spell
        return usual if view.rank is None else view.rank, view.request
    found = loaded.findings[view.finding] if view.finding else None
    if found and found.request is not None:
        return found.rank or 0, found.request
    if view.point is None:
        return None
    lane, since = view.point
    span = loaded.timeline.at(lane, loaded.origin + since)
    return loaded.timeline.request_of(lane) if span is None else loaded.timeline.request_in(span)


def _ways(loaded: LoadedTrace, view: View, who: Who) -> Iterator[Component]:
    """To the request's lane, to why it waits where one stands, and to the other requests."""
    lane = loaded.timeline.lane_of_request(*who)
    first = None if lane is None else loaded.timeline.next_span(lane, loaded.origin - 1)
    if lane is not None and first is not None:
        there = max(first.start_ns - loaded.origin, 0)
        yield html.A("show it on the timeline", href=view.link(sel=(lane, there)))
    if loaded.steps:
        yield html.A("why it waits, at a step", href=view.link(tab="step", who=who[1]))
    others = view.link(tab="request", request=None, rank=None, sel=None, finding=None, at=None)
    yield html.A("all requests", href=others)


def _every(loaded: LoadedTrace, view: View) -> Iterator[Component]:
    """All requests to choose from and, as in the terminal, the page of the one that came first."""
    blamed = loaded.blamed
    if not blamed.names_requests:
        yield html.P(NO_REQUESTS, className="controls muted")
        return
    rows = blamed.requests.select("rank", "request").head(MOST_NAMES).rows()
    first, rows = rows[0], sorted(rows, key=lambda who: (who[0], natural(who[1])))
    ranks = blamed.requests["rank"].n_unique() > 1
    links = [
        html.A(
            plain(f"{rank}:{request}" if ranks else request),
            href=view.link(tab="request", rank=rank, request=request),
            className="tag on" if (rank, request) == first else "tag",
        )
        for rank, request in rows
    ]
    many = times(len(blamed.requests), "request")
    yield html.P(f"{many}: choose one, or click its lane", className="controls muted")
    more = len(blamed.requests) - len(rows)
    rest = (
        [html.Span(f"and {count(more)} more: find one with /", className="muted")] if more else []
    )
    yield html.Div([*links, *rest], className="tags wide grid")
    yield _page(loaded, view, first)
