"""The drawer's step: what the engine held when a batch was formed, and who was left out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from dash import html
from dash.development.base_component import Component

from stepscope.app.debug import (
    CoreSlots,
    Names,
    Position,
    State,
    StepDetail,
    batch_heading,
    cores_line,
    left_out_heading,
)
from stepscope.app.debug.commands.where_it_is import change_blocks
from stepscope.app.debug.shown.scheduler_lines import scheduler_lines
from stepscope.app.debug.shown.value_over_run import ValueOverRun
from stepscope.app.debug.shown.why_blocks import known_why, why_blocks
from stepscope.app.debug.why import Chain
from stepscope.app.present.blocks import AtRequest, Table
from stepscope.app.present.summary.step_gpu_tables import KERNELS, ON_GPU
from stepscope.app.present.where import of_rank, step_of, when
from stepscope.app.printable import plain
from stepscope.app.units import count
from stepscope.app.web.components import components
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.panes.break_bar import break_bar
from stepscope.app.web.panes.value_bar import Asked, value_bar, value_line, value_of
from stepscope.app.web.panes.what_if import what_bar, what_section
from stepscope.app.web.stops import Looked, looked_here, stand
from stepscope.app.web.view import View

MAX_NAMES, MAX_RANKS = 60, 32
ORDER = ("step", ON_GPU, KERNELS, "left out", "batch", "changed", "buckets", "core groups",
         "segments", "collectives", "buffers")  # fmt: skip


def step_pane(loaded: LoadedTrace, view: View) -> Component:
    """The step of the view, the trace's first without one; links lead to those before and after.

    Between steps it is what is known there. Of a trace without steps it is what is known of the
    moment that is selected, or of the first.
    """
    with loaded.session_lock:
        position = stand(loaded, view)
        session = loaded.debugger.session
        detail = session.detail()
        of = loaded.debugger.session_of
        chain = known_why(session, view.who, of) if view.who else None
        found = looked_here(loaded, view.stop) if view.stop else None
        stops = list(break_bar(loaded.example_stop, view, found))
        changed = _changed(loaded, view, position)
        value = value_of(loaded, view)
    asks = [*stops, *value_bar(view, value, position.ts_ns), *what_bar(view)]
    told = [
        html.Div(asks, className="controls asks"),
        *_told(loaded, found, value, position),
        *what_section(loaded, view),
    ]
    why = [_why(chain, view, detail)] if chain else []
    place = (
        _controls(loaded, view, position, detail.after)
        if loaded.steps
        else _without_steps(loaded, position)
    )
    return html.Div([place, *changed, *told, *why, _columns(detail)])


def _without_steps(loaded: LoadedTrace, position: Position) -> Component:
    here = when(position.ts_ns, loaded.timeline)
    return html.P(f"This trace has no steps; this is at {here}.", className="controls muted")


def _controls(loaded: LoadedTrace, view: View, position: Position, state: State) -> Component:
    here = view.link(step=view.step, seq=view.seq, ts=view.ts, t=None)
    return html.Div(
        [
            html.A("◀ previous", href=view.link(go="previous-step"), className="button"),
            html.B(_place(loaded, position)),
            html.A("next ▶", href=view.link(go="next-step"), className="button"),
            *_between(loaded, view, state),
            *_ranks(loaded, view, position),
            html.A("show on the timeline", href=here),
        ],
        className="controls",
    )


def _place(loaded: LoadedTrace, position: Position) -> str:
    """The step, its place among those of its rank, and whose it is where several have some."""
    moments, step = loaded.debugger.session.moments, position.step
    place = step_of(step, None if step is None else moments.place_of(step), len(moments.steps))
    is_usual = position.rank == loaded.session.rank
    return place + (of_rank(loaded.composition) if is_usual else f" of rank {position.rank}")


def _ranks(loaded: LoadedTrace, view: View, position: Position) -> Iterator[Component]:
    """The way to the other ranks, at the same moment."""
    ranks = loaded.debugger.ranks
    if len(ranks) < 2:
        return
    yield html.Span("rank", className="muted")
    at = max(0, position.ts_ns - loaded.origin)
    for rank in ranks[:MAX_RANKS]:
        other = None if rank == loaded.session.rank else rank
        href = view.link(rank=other, seq=None, ts=at)
        is_here = rank == position.rank
        yield (
            html.B(str(rank))
            if is_here
            else html.A(str(rank), href=href, title=f"rank {rank}, then")
        )


def _between(loaded: LoadedTrace, view: View, state: State) -> Iterator[Component]:
    """Behind which change one stands and when, where that is not where the step was formed."""
    if view.seq is None and view.ts is None:
        return
    last = "" if state.seq is None else f"behind change #{state.seq:,} "
    forming = f", as step {state.forming.step:,} is formed" if state.forming else ""
    yield html.Span(f"{last}at {when(state.ts_ns, loaded.timeline)}{forming}")


def _told(
    loaded: LoadedTrace, found: Looked | None, value: Asked, position: Position
) -> Iterator[Component]:
    """What came of what was asked for: a line for what is wrong with it, or a value's chart."""
    if found and found.failed:
        yield html.P(plain(found.failed), className="failure")
    if isinstance(value, ValueOverRun):
        yield value_line(value, loaded.origin, position.ts_ns)
    elif value:
        yield html.P(plain(" ".join(str(value).split())), className="failure")


def _changed(loaded: LoadedTrace, view: View, position: Position) -> list[Component]:
    """The rows that tell of the change behind which one stands; the caller holds the lock."""
    if view.seq is None or position.seq is None:
        return []
    lines = change_blocks(loaded.debugger.tables, position.rank, position.seq)
    return [html.Div(components(lines), className="controls change")]


def _why(chain: Chain, view: View, detail: StepDetail) -> Component:
    """Why who was asked about waits here; each link leads to the step of the row that proves it."""
    close = html.A("close", href=view.link(who=None), className="link")
    heading = html.H3(plain(f"why {chain.subject}"))
    more = [close]
    if view.who in {*(detail.after.waiting or ()), *(detail.after.running or ())}:
        href = view.link(tab="request", rank=detail.rank, request=view.who)
        more.insert(0, html.A("its page", href=href, className="link"))
    told = html.Div(more, className="links")
    return html.Section([heading, *components(why_blocks(chain)), told], className="why")


def _columns(detail: StepDetail) -> Component:
    titled = {table.title: table for table in detail.tables()}
    held = list(_held(detail.after, detail.names))
    headings = {"batch": batch_heading(detail), "left out": left_out_heading(detail)}
    told = [title for title in ORDER if title in titled]
    shown = [
        _section(_linked(titled[title], detail), *headings.get(title, (title, "")), title)
        for title in told
    ]
    if held:
        shown.insert(1, html.Section(held))
    # What has no rows is a sentence that says why, and comes last.
    shown += [_section(None, *headings[title], title) for title in headings if title not in told]
    return html.Div(shown, className="columns")


def _linked(table: Table | None, detail: StepDetail) -> Table | None:
    """The batch with links to its requests' pages."""
    if table is None or table.title != "batch":
        return table
    leads = tuple(
        AtRequest(detail.rank, row["request"]) if row["request"] is not None else None
        for row in detail.rows[: len(table.rows)]
    )
    return replace(table, leads=leads)


def _section(table: Table | None, heading: str, unsaid: str, title: str) -> Component:
    """A table under its heading; `unsaid` is what the trace does not tell of it."""
    shown: list[Component] = [html.H3(heading, title=title)]
    if unsaid:
        shown.append(html.P(unsaid, className="muted"))
    if table:
        shown += components([replace(table, title="")])
    return html.Section(shown)


def _held(state: State, names: Names) -> Iterator[Component]:
    if state.waiting is not None:
        yield from _names("queue", state.waiting, can_ask=True)
    if state.running is not None:
        yield from _names("running", state.running, can_ask=True)
    if state.slots is not None:
        yield from _names("slots", [state.slot_text(slot) for slot in sorted(state.slots)])
    if state.kv_blocks is not None:
        held = Counter(state.kv_blocks.values())
        owners = sorted(held, key=lambda owner: (-held[owner], owner))
        title = f"KV blocks · {count(len(state.kv_blocks))} held"
        yield from _names(title, [f"{owner} ×{held[owner]:,}" for owner in owners])
    if state.cores:
        yield html.H3(cores_line(state.cores))
        yield _tags(list(_at_work(state.cores, names)))
    for line in scheduler_lines(state):
        yield html.P(line, className="muted")


def _names(
    title: str, names: tuple[str, ...] | list[str], *, can_ask: bool = False
) -> Iterator[Component]:
    """Names under a title; one that can be asked about leads to why it waits."""
    yield html.H3(f"{title} · {count(len(names))}" if "·" not in title else title)
    yield _tags(names, can_ask=can_ask)


def _tags(names: tuple[str, ...] | list[str], *, can_ask: bool = False) -> Component:
    shown = [_asked(name) if can_ask else _tag(name) for name in names[:MAX_NAMES]]
    more = len(names) - len(shown)
    rest = [html.Span(f"and {count(more)} more", className="muted")] if more else []
    return html.P([*shown, *rest] or html.Span("none", className="muted"), className="tags")


def _tag(name: str) -> Component:
    return html.Span(plain(name), className="tag")


def _asked(name: str) -> Component:
    href = View().link(tab="step", who=name)
    return html.A(plain(name), href=href, className="tag", title=plain(f"why {name}"))


def _at_work(cores: Mapping[int, CoreSlots], names: Names) -> Iterator[str]:
    for core, slots in cores.items():
        if slots.state != "idle":
            held = " then ".join(map(names.block, slots.blocks))
            yield f"{names.core(core)}: {'held for ' if slots.state == 'held' else ''}{held}"
