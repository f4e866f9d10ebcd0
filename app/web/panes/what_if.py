"""What if: a line in which changes are asked for, what can be, and what came of a run with them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from dash import dcc, html
from dash.development.base_component import Component

from stepscope.app.present.blocks import AtChange, Target
from stepscope.app.printable import plain
from stepscope.app.replay.what_if.asked import taken
from stepscope.app.replay.what_if.runs import Run
from stepscope.app.replay.what_if.told import EXAMPLE, HEADING, NOT_POSSIBLE, choices_told, run_told
from stepscope.app.web.components import Children, components
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.view import View
from stepscope.ingest.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.app.replay.what_if.choices import Choice

LIST = "?"
"""What an address says where what can be different is to be listed."""
START, CANCEL = "what-if", "cancel-what-if"
"""The moves of an address that begin a run, and end what is under way."""
LOOKS_EVERY_MS = 400


def ask_what_if(loaded: LoadedTrace, words: str | None, move: str) -> None:
    """Do what a move of an address asks for; what is wrong with it the pane says."""
    if move == CANCEL:
        loaded.what_ifs.cancel()
    elif move == START and words and words != LIST:
        try:
            loaded.what_ifs.start(words)
        except StepscopeError:
            return  # the pane finds the same, and says it


def what_bar(view: View) -> Iterator[Component]:
    """The line to type in."""
    says = "W: what another variant, setting, or a fault less would have changed"
    yield html.Span(HEADING, className="muted", title=says)
    yield dcc.Input(
        id="what",
        type="text",
        value="" if view.what in (None, LIST) else view.what,
        placeholder=f"like {EXAMPLE}",
        autoComplete="off",
        spellCheck="false",
    )
    if view.what is None:
        yield html.A(
            "choices", href=view.link(tab="step", what=LIST), title="what can be different"
        )
    else:
        yield html.A("clear", href=view.link(what=None), title="ask for nothing")


def what_section(loaded: LoadedTrace, view: View) -> list[Component]:
    """What came of what is asked for, which is looked at again while it is under way."""
    if view.what is None:
        return []
    told, is_under_way = what_told(loaded, view.what)
    return [
        html.Section(
            [
                html.Div(told, id="what-told"),
                dcc.Store(id="what-words", data=view.what),
                dcc.Interval(id="what-tick", interval=LOOKS_EVERY_MS, disabled=not is_under_way),
            ],
            className="what",
        )
    ]


def what_told(loaded: LoadedTrace, words: str) -> tuple[Children, bool]:
    """What there is to say of words, and whether more will come."""
    asked = loaded.what_ifs
    line = "" if words == LIST else words
    try:
        choices = asked.choices
    except StepscopeError as error:
        return [html.P(NOT_POSSIBLE), _failure(error)], False
    try:
        run = asked.of(line) if line else None
    except StepscopeError as error:
        return [_failure(error), *_choices(choices.listed(), "")], False
    if run is None:
        listed = [*components(choices_told(choices)), *_choices(choices.listed(), line)]
        return [*_other(asked.under_way), *_ways(line, "run it"), *listed], False
    told = components(run_told(run, asked.clock(), _there(loaded, run)))
    if run.is_under_way:
        return [*told, _cancel()], True
    ways = _ways(line, "run it again") if run.failed else []
    return [*told, *ways], False


def _failure(error: StepscopeError) -> Component:
    return html.P(plain(str(error)), className="failure")


def _other(run: Run | None) -> Children:
    """What else is under way, as one is run at a time."""
    if run is None:
        return []
    told = f"{run.asked.words} is still being run, and one is run at a time"
    return [html.P(plain(told), className="failure"), _cancel()]


def _cancel() -> Component:
    link = html.A("cancel it", href=View().link(go=CANCEL), id="what-cancel")
    return html.Div([link], className="links")


def _ways(line: str, says: str) -> Children:
    if not line:
        return []
    href = View().link(tab="step", what=line, go=START)
    return [html.Div([html.A(says, href=href, id="what-run")], className="links")]


def _choices(choices: list[Choice], line: str) -> Children:
    """What can be put into the line, under what it is."""
    found: Children = []
    for what, group in groupby(choices, key=lambda each: each.what):
        links = [_choice(each, line) for each in group]
        found += [html.H3(f"{what}s"), html.P(links, className="tags wide")]
    return [html.Div(found, id="what-choices")]


def _choice(choice: Choice, line: str) -> Component:
    href = View().link(tab="step", what=taken(line, choice.words))
    recorded = f"recorded: {choice.recorded}"
    title = f"{choice.says} · {recorded}" if choice.says else recorded
    return html.A(plain(choice.words), href=href, className="tag", title=plain(title))


def _there(loaded: LoadedTrace, run: Run) -> Target | None:
    """The step at which the runs diverge, where it is one of another rank than the usual."""
    came = run.came
    if came is None or came.step is None or came.rank in (None, loaded.session.rank):
        return None
    with loaded.session_lock:
        moments = loaded.debugger.session_of(came.rank).moments
        place = moments.place_of(came.step)
        seq = None if place is None else moments.at_step(place).seq
    return None if seq is None else AtChange(seq, came.step, came.rank)
