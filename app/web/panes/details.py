"""The details pane: what, evidence, why it was so decided, state before and after, how to fix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dash import html
from dash.development.base_component import Component

from stepscope.analyzers.findings.finding import Finding
from stepscope.app.palette import SEVERITY_MARKS, STATES
from stepscope.app.present.facts import arguments, before_and_after, row_facts, whereabouts
from stepscope.app.present.facts import reasons as recorded
from stepscope.app.present.where import lane_name, when
from stepscope.app.printable import plain
from stepscope.app.timeline import SpanView
from stepscope.app.units import count, duration, quantity
from stepscope.app.web.scene import Scene
from stepscope.app.web.travel import Arrival

MAX_REASONS = 3

Children = list[Component]


def about(scene: Scene, arrival: Arrival) -> Children:
    """What is said about the finding or the span that is selected, or how to select one."""
    if arrival.view.finding:
        return list(_finding(scene, arrival))
    if arrival.span:
        return list(_span(scene, arrival.span))
    return list(_trace(scene))


def heading(text: str) -> Component:
    """The name of a part."""
    return html.H3(text)


def facts(rows: Iterable[tuple[str, ...]]) -> Component:
    """Names beside one value or two; a second that differs from the first stands out."""
    rows = [tuple(map(plain, row)) for row in rows]
    three = any(len(row) > 2 for row in rows)
    cells: Children = []
    for name, *values in rows:
        changed = len(values) == 2 and values[0] != values[1]
        cells.append(html.Dt(name))
        cells += [
            html.Dd(value, className="changed" if changed and at else "")
            for at, value in enumerate(values)
        ]
    return html.Dl(cells, className="facts three" if three else "facts")


def reasons(lines: Iterable[str]) -> Component:
    """A list of recorded reasons."""
    return html.Ul([html.Li(plain(line)) for line in lines], className="reasons")


# ── a finding ────────────────────────────────────────────────────────────────────────────────────


def _finding(scene: Scene, arrival: Arrival) -> Iterator[Component]:
    found = scene.findings[arrival.view.finding or ""]
    glyph = SEVERITY_MARKS[found.severity].glyph
    yield html.H2(f"{glyph} {found.code} {found.name}", className=str(found.severity))
    yield html.P(plain(found.message))
    yield html.P(" · ".join(whereabouts(found, scene.timeline)), className="muted")
    known = [(name, value) for name, value in found.evidence.items() if value is not None]
    if known:
        yield heading("evidence")
        yield facts(quantity(name, value) for name, value in known)
    if why := recorded(found, scene.trace, MAX_REASONS):
        yield heading("why it was decided so")
        yield reasons(why)
    if around := before_and_after(found, scene.timeline):
        yield heading("state before · after")
        yield facts(around)
    yield heading("how to fix")
    yield html.P(plain(found.fix))
    yield _links(arrival, found)


def _links(arrival: Arrival, found: Finding) -> Component:
    view = arrival.view
    choices: Children = [html.A(f"explain {found.code}", href=view.link(explain=found.code))]
    if view.step is not None:
        choices.append(html.A(f"step {count(view.step)}", href=view.link(tab="step")))
    choices.append(html.Button("copy link", id="copy", type="button"))
    return html.Div(choices, className="links")


# ── a span ───────────────────────────────────────────────────────────────────────────────────────


def _span(scene: Scene, span: SpanView) -> Iterator[Component]:
    state = STATES[span.state].name
    yield html.H2(span.label or state)
    yield html.P(f"{state} · {lane_name(scene.timeline.lanes[span.lane])}", className="muted")
    yield heading("when")
    yield facts(
        [
            ("starts", when(span.start_ns, scene.timeline, 1)),
            ("ends", when(span.end_ns, scene.timeline, 1)),
            ("takes", duration(span.end_ns - span.start_ns)),
        ]
    )
    yield heading(f"{span.ref[0]}, row {span.ref[1]:,}")
    yield facts(row_facts(span, scene.timeline))
    if found := arguments(span, scene.timeline):
        yield heading("arguments")
        yield facts(found)
    yield html.Div(html.Button("copy link", id="copy", type="button"), className="links")


# ── nothing ──────────────────────────────────────────────────────────────────────────────────────


def _trace(scene: Scene) -> Iterator[Component]:
    manifest = scene.trace.manifest
    yield html.H2(plain(scene.trace.name))
    yield facts(
        [
            ("producer", f"{manifest.producer} {manifest.producer_version}"),
            ("clock", manifest.clock.kind),
            ("ranks", count(len(manifest.ranks))),
            ("steps", count(len(scene.composition))),
            ("length", duration(scene.length)),
            *[(name, count(number)) for name, number in _rules_that_fired(scene)],
        ]
    )
    if scene.result.not_applicable:
        yield heading("not applicable")
        yield html.P(f"{scene.result.coverage.share}.")
        yield html.P(" ".join(scene.result.not_applicable), className="muted")
    yield heading("where to begin")
    yield html.P("Press n for the next finding, or click one below.")
    yield html.P("Drag to move, wheel to zoom, click a span to read it, ? for all keys.")


def _rules_that_fired(scene: Scene) -> list[tuple[str, int]]:
    return [(code, number) for code, number in scene.result.counts.items() if number]
