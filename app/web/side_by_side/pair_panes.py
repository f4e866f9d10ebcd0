"""The panes of two traces, and the line that says how they lie on each other and changes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dash import html
from dash.development.base_component import Component

from stepscope.app.paired import deltas
from stepscope.app.palette import DIVERGED_GLYPH
from stepscope.app.present.blocks import AtRequest, AtSpan, Block, Table, Target
from stepscope.app.printable import plain
from stepscope.app.web.components import components
from stepscope.app.web.panes.findings import findings_pane
from stepscope.app.web.panes.flags import flags_pane
from stepscope.app.web.side_by_side.loaded_pair import LoadedPair
from stepscope.app.web.side_by_side.pair_source import EXCHANGED
from stepscope.app.web.view import View
from stepscope.app.widths import fit_middle

LONGEST_NAME = 24


def pair_pane(loaded: LoadedPair, view: View) -> Component:
    """The pane that an address asks for; findings where it asks for one that two have not."""
    if view.tab == "overview":
        return _tables(deltas.overview(loaded.pair))
    if view.tab == "blame":
        return _tables(_going(loaded, each) for each in deltas.requests(loaded.pair))
    if view.tab == "step":
        return _tables(deltas.steps(loaded.pair, view.step))
    if view.tab == "flags":
        return flags_pane(loaded, view)
    rules = components([deltas.by_rule(loaded.pair)])
    return html.Div([html.Div(rules, className="summary deltas"), findings_pane(loaded, view)])


def _tables(blocks: Iterator[Block]) -> Component:
    return html.Div(components(blocks), className="summary deltas")


def _going(loaded: LoadedPair, block: Block) -> Block:
    """A table of requests leads to their lanes."""
    if not isinstance(block, Table):
        return block
    return replace(block, leads=tuple(_lane_of(loaded, each) for each in block.leads))


def _lane_of(loaded: LoadedPair, to: Target | None) -> Target | None:
    if not isinstance(to, AtRequest):
        return to
    lane = loaded.joined.lane_of_request(to.rank, to.request)
    span = None if lane is None else loaded.joined.next_span(lane, loaded.origin - 1)
    return None if lane is None or span is None else AtSpan(lane, span.start_ns - loaded.origin)


def relation(loaded: LoadedPair, lane: int | None) -> list[Component]:
    """Which is A and which B, how B lies on A, what else is possible, and where they diverge."""
    pair, own = loaded.pair, str(loaded.key)
    before = EXCHANGED if own.startswith(EXCHANGED) else ""
    who = pair.who(loaded.joined, lane) if lane is not None else None
    asked = f"request:{who[0]}:{who[1]}" if who else ""
    if loaded.alignment.who and not who:
        asked = loaded.alignment.spelled
    names = [
        html.Span(
            [html.B(f"{letter} "), fit_middle(plain(trace.name), LONGEST_NAME)],
            title=plain(trace.name),
        )
        for letter, trace in zip("AB", pair.traces, strict=True)
    ]
    can_step = not isinstance(pair.aligned("step"), str)
    is_request = loaded.alignment.by == "request"
    buttons = [
        _button("time", f"{before}time", loaded.alignment.by == "time", "by time since both began"),
        _button("step", f"{before}step", loaded.alignment.by == "step", "by step",
                off=not can_step),
        _button("request", before + asked, is_request and asked == loaded.alignment.spelled,
                "by the arrival of the request whose lane is selected", off=not asked),
    ]  # fmt: skip
    other = _exchanged(loaded, before)
    swap = _button("exchange", other, on=False, says="exchange A and B", id="exchange")
    said = html.A(
        f"{DIVERGED_GLYPH} {plain(pair.said)}" if loaded.diverged else plain(pair.said),
        href="?go=divergence" if loaded.diverged else None, id="diverged",
    )  # fmt: skip
    how = html.Span(f"aligned by {loaded.alignment.said}", id="aligned", className="muted")
    return [*names, html.Span(buttons, id="ways"), swap, how, said]


def _exchanged(loaded: LoadedPair, before: str) -> str:
    """What stands for the same with B as A."""
    who = loaded.alignment.who
    spelled = (
        loaded.alignment.by
        if who is None
        else f"request:{who[0]}:{loaded.pair.called_in_b(who[1])}"
    )
    return spelled if before else EXCHANGED + spelled


def _button(
    text: str, align: str, on: bool, says: str, *, off: bool = False, id: str | None = None
) -> Component:
    told: dict[str, Any] = {"data-align": align, "aria-pressed": str(on).lower()}
    told |= {"id": id} if id else {}
    return html.Button(
        text, className="on" if on else "", type="button", title=says, disabled=off, **told
    )
