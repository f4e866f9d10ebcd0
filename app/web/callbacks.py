"""What answers what: an address is resolved to a view, a view fills panes."""

from __future__ import annotations

from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, html, no_update
from dash.development.base_component import Component
from flask import request

from stepscope.analyzers.check.explain import explain
from stepscope.app.live.words import STEPS_ARE_NOT_WALKED, Following
from stepscope.app.printable import plain
from stepscope.app.queries.query_words import query_completions
from stepscope.app.timeline import Hit
from stepscope.app.units import count
from stepscope.app.web import figures, shades, wire
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.panes.area import exported
from stepscope.app.web.panes.details import about
from stepscope.app.web.panes.flags import flag_typed
from stepscope.app.web.panes.pane import pane_of
from stepscope.app.web.panes.sql import exported_answer
from stepscope.app.web.panes.what_if import what_told
from stepscope.app.web.pictures.route import answer_pictures
from stepscope.app.web.resolve import asks_for_findings, resolve
from stepscope.app.web.side_by_side.loaded_pair import LoadedPair
from stepscope.app.web.side_by_side.pair_panes import pair_pane, relation
from stepscope.app.web.skeleton.layout import marks, num_findings
from stepscope.app.web.skeleton.page_header import legend
from stepscope.app.web.source import Source
from stepscope.app.web.view import LONGEST, View
from stepscope.ingest.errors import ConfigError

MAX_HITS = 30
MOST_WORDS = 12
REVISION = State("revision", "data")
"""Which revision of a recording the page looks at: lanes have other numbers in another one."""
NEEDS_ALL = frozenset({"blame", "step", "request"})
"""Panes that need every row since the beginning, and those that end what has begun."""


def answer(app: Dash, source: Source) -> None:
    """Connect the page with what it looks at; stores report once while they are still empty."""
    _answer_address(app, source)
    _answer_view(app, source)
    _answer_requests(app, source)
    _answer_typing(app, source)
    _answer_what_if(app, source)
    _answer_flags(app, source)
    _answer_news(app, source)
    answer_pictures(app.server, source)
    _hand_over(app)


def _answer_address(app: Dash, source: Source) -> None:
    @app.callback(
        Output("view", "data"), Input("address", "data"), REVISION, prevent_initial_call=True
    )
    def show(address: dict[str, Any] | None, revision: object) -> Any:
        if address is None:
            return no_update
        search = str(address["search"])
        loaded = (source.with_findings if asks_for_findings(search) else source.at)(revision)
        return resolve(loaded, search).as_props(loaded)


def _answer_view(app: Dash, source: Source) -> None:
    @app.callback(
        Output("pane", "children"),
        Output("about", "children"),
        Output("tokens", "figure"),
        Output("rule", "children"),
        Output("filled", "data"),
        Output("relation", "children"),
        Input("view", "data"),
        Input("light", "data"),
        State("filled", "data"),
        REVISION,
        prevent_initial_call=True,
    )
    def fill(
        props: dict[str, Any] | None, is_light: bool | None, filled: object, revision: object
    ) -> tuple[Any, ...]:
        if props is None:
            return (no_update,) * 6
        loaded = source.at(revision)
        resolved = resolve(loaded, props["search"])
        index = loaded.step_index(resolved.view.step)
        shown, pane = [props["search"], revision, index], _pane(loaded, resolved.view)
        pane = shades.in_light(pane) if is_light else pane
        is_recoloured = "light.data" in ctx.triggered_prop_ids
        is_drawn = isinstance(filled, list) and filled[1:] == shown[1:] and not is_recoloured
        # Plotly takes longer over this chart than all else takes that is shown after a key.
        tokens = no_update if is_drawn else _tokens(loaded, index, is_light=bool(is_light))
        if [*ctx.triggered_prop_ids] == ["light.data"] and filled == shown:
            # All but charts have their colours from the style sheet, and stay as they are: to make
            # a table of thousands of cells anew can take Dash half a minute.
            charts = pane if shades.has_charts(pane) else no_update
            return charts, no_update, tokens, no_update, shown, no_update
        return (
            pane,
            about(loaded, resolved),
            tokens,
            _page_of(resolved.view.explain),
            shown,
            relation(loaded, resolved.cursor[0]) if isinstance(loaded, LoadedPair) else [],
        )

    @app.callback(
        Output("load", "figure"),
        Output("told-load", "children"),
        Output("told-load", "title"),
        Input("light", "data"),
        Input("revision", "data"),
        prevent_initial_call=True,
    )
    def draw_load(is_light: bool | None, revision: object) -> tuple[Any, ...]:
        if is_light is None:
            return no_update, no_update, no_update
        loads = source.at(revision).loads
        drawn = figures.loads(loads)
        what = loads[0].what if len(loads) == 1 else f"{loads[0].what}, A · B"
        return shades.figure_in_light(drawn) if is_light else drawn, what, what


def _tokens(loaded: LoadedTrace, index: int | None, *, is_light: bool) -> Any:
    """The chart of the steps around one."""
    drawn = figures.tokens_near(loaded.composition, index)
    return shades.figure_in_light(drawn) if is_light else drawn


def _pane(loaded: LoadedTrace, view: View) -> Any:
    """The pane below the timeline, or why there is none while a recording is followed."""
    if loaded.live and view.tab in NEEDS_ALL:
        return html.P(STEPS_ARE_NOT_WALKED, className="controls muted")
    return (
        pair_pane(loaded, view)
        if isinstance(loaded, LoadedPair)
        else pane_of(view.tab)(loaded, view)
    )


def _page_of(code: str | None) -> list[Component]:
    if code is None:
        return []
    try:
        page = explain(code)
    except ConfigError as error:
        page = str(error)
    return [html.Div(plain_lines(page), className="page")]


def plain_lines(text: str) -> str:
    """Text made plain line by line."""
    return "\n".join(plain(line) for line in text.splitlines())


def _answer_requests(app: Dash, source: Source) -> None:
    @app.callback(
        Output("download", "data"), Input("export", "data"), REVISION, prevent_initial_call=True
    )
    def export(asked: dict[str, Any] | None, revision: object) -> Any:
        if asked is None:
            return no_update
        loaded, search = source.at(revision), str(asked["search"])
        if form := str(asked.get("form") or ""):
            return exported_answer(loaded, View.parse(search), form)
        return exported(loaded, search)

    @app.callback(
        Output("hits", "children"), Input("find", "value"), REVISION, prevent_initial_call=True
    )
    def find(text: str | None, revision: object) -> Any:
        if text is None:
            return no_update
        loaded = source.at(revision)
        hits = loaded.timeline.find(text[:200], MAX_HITS)
        if text.strip() and not hits:
            return html.Div("nothing is called that", className="hit muted")
        return [_hit(loaded, hit, first=at == 0) for at, hit in enumerate(hits)]


def _answer_typing(app: Dash, source: Source) -> None:
    @app.callback(
        Output("suggested-words", "data"),
        Input("typed", "data"),
        REVISION,
        prevent_initial_call=True,
    )
    def suggest(typed: dict[str, Any] | None, revision: object) -> Any:
        if typed is None:
            return no_update
        before, after = (str(typed[part])[:LONGEST] for part in ("before", "after"))
        return query_completions(source.at(revision).names, before, after)[:MOST_WORDS]


def _answer_flags(app: Dash, source: Source) -> None:
    @app.callback(
        Output("flag-told", "data"), Input("flag-typed", "data"), REVISION,
        prevent_initial_call=True,
    )  # fmt: skip
    def type_flag(asked: dict[str, Any] | None, revision: object) -> Any:
        if asked is None:
            return no_update
        loaded = source.at(revision)
        resolved = resolve(loaded, str(asked["search"]))
        told = flag_typed(loaded, resolved.view, resolved.navigator, asked)
        return {**told, "asked": asked["asked"]}


def _answer_news(app: Dash, source: Source) -> None:
    """Tell what can be had of a recording that goes on, and give it when it is asked for."""

    def news() -> dict[str, Any]:
        asked = request.args.get("following", "")
        news = source.news(Following.__members__.get(asked, Following.HERE))
        flags = source.now.placed_flags
        return {**news, "flags": len(flags.now) and flags.version}

    app.server.add_url_rule("/news", view_func=news)

    @app.callback(
        Output("model", "data"),
        Output("legend", "children"),
        Output("marks", "children"),
        Output("count-findings", "children"),
        Input("news", "data"),
        REVISION,
        prevent_initial_call=True,
    )
    def renew(asked: dict[str, Any] | None, revision: object) -> tuple[Any, ...]:
        if asked is None:
            return (no_update,) * 4
        before = source.at(revision)
        loaded = source.asked_for(asked)
        is_alike = loaded.timeline.kinds == before.timeline.kinds
        return (
            wire.model(loaded),
            no_update if is_alike else legend(loaded),
            marks(loaded),
            num_findings(loaded),
        )


def _hit(loaded: LoadedTrace, hit: Hit, *, first: bool) -> Component:
    times = f" ×{count(hit.count)}" if hit.count > 1 else ""
    start = max(0, hit.ts_ns - loaded.origin)
    point = None if hit.lane is None else (hit.lane, start)
    href = View().link(sel=point) if point else View().link(t=(start, start + 1000))
    cells = [html.Span(hit.kind, className="kind"), html.Span(f"{hit.label}{times}")]
    return html.A(cells, href=href, className="hit first" if first else "hit")


def _answer_what_if(app: Dash, source: Source) -> None:
    @app.callback(
        Output("what-told", "children"),
        Output("what-tick", "disabled"),
        Input("what-tick", "n_intervals"),
        Input("what-words", "data"),
        REVISION,
        prevent_initial_call=True,
    )
    def look_again(_times: int | None, words: str | None, revision: object) -> tuple[Any, ...]:
        if not words:
            return no_update, True
        told, is_under_way = what_told(source.at(revision), words[:LONGEST])
        return told, not is_under_way


def _hand_over(app: Dash) -> None:
    """Hand what has come to the page's own scripts."""
    for function, source, prop in (
        ("open", "model", "data"),
        ("receive", "view", "data"),
        ("filled", "filled", "data"),
        ("loaded", "load", "figure"),
        ("step", "tokens", "clickData"),
        ("step", "composition", "clickData"),
        ("place", "value-line", "clickData"),
        ("suggested", "suggested-words", "data"),
        ("flagged", "flag-told", "data"),
    ):
        act = ClientsideFunction("stepscope", function)
        # Dash gives this one method no types.
        app.clientside_callback(act, Input(source, prop))  # type: ignore[no-untyped-call]  # Dash has no types
