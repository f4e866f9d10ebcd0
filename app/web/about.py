"""The details pane: what, evidence, why it was so decided, state before and after, how to fix."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import polars as pl
from dash import html
from dash.development.base_component import Component

from stepscope.analyzers.finding import Finding
from stepscope.app.plain import plain
from stepscope.app.timeline import Lane, SpanView
from stepscope.app.timeline.palette import SEVERITY_MARKS, STATES
from stepscope.app.tui.places import lane_name, place, when
from stepscope.app.tui.units import count, duration, quantity
from stepscope.app.web.scene import Scene
from stepscope.app.web.travel import Arrival

MAX_REASONS = 3
MAX_FACTS = 60

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
    yield html.P(" · ".join(_where(scene, found)), className="muted")
    known = [(name, value) for name, value in found.evidence.items() if value is not None]
    if known:
        yield heading("evidence")
        yield facts(quantity(name, value) for name, value in known)
    yield from _why(scene, found)
    yield from _before_and_after(scene, found)
    yield heading("how to fix")
    yield html.P(plain(found.fix))
    yield _links(arrival, found)


def _where(scene: Scene, found: Finding) -> Iterator[str]:
    yield place(found, scene.timeline)
    if found.rank:
        yield f"rank {found.rank}"
    if found.step is not None:
        yield f"step {count(found.step)}"
    if found.ts_ns is not None:
        lasted = (found.end_ns or found.ts_ns) - found.ts_ns
        length = f" for {duration(lasted)}" if lasted > 0 else ""
        yield when(found.ts_ns, scene.timeline, 1) + length
    if found.count > 1:
        yield f"{count(found.count)} times; this is the worst or the first"


def _links(arrival: Arrival, found: Finding) -> Component:
    view = arrival.view
    choices: Children = [html.A(f"explain {found.code}", href=view.link(explain=found.code))]
    if view.step is not None:
        choices.append(html.A(f"step {count(view.step)}", href=view.link(tab="step")))
    choices.append(html.Button("copy link", id="copy", type="button"))
    return html.Div(choices, className="links")


def _why(scene: Scene, found: Finding) -> Iterator[Component]:
    rows = _decisions(scene, found)
    if rows:
        yield heading("why it was decided so")
        yield reasons(map(decision, rows))


def _decisions(scene: Scene, found: Finding) -> list[dict[str, Any]]:
    """The last decisions about a finding's request or task up to its time, the last one first."""
    about = [str(each) for each in (found.request, found.task) if each is not None]
    if not about or not scene.trace.has("decisions"):
        return []
    wanted = pl.col("subject").is_in(about) & (pl.col("rank") == (found.rank or 0))
    if found.ts_ns is not None:
        wanted &= pl.col("ts_ns") <= found.ts_ns
    rows = scene.trace.decisions.filter(wanted).sort("ts_ns", maintain_order=True)
    return rows.tail(MAX_REASONS).reverse().collect().to_dicts()


def decision(row: dict[str, Any]) -> str:
    """A decision in a line: `deferred: no free block, needs 12, 3 free, held by 17`."""
    parts = [row["reason"] or row["resource"] or ""]
    if row["needed"] is not None:
        parts.append(f"needs {count(row['needed'])}")
    if row["available"] is not None:
        parts.append(f"{count(row['available'])} free")
    if row["holder"]:
        parts.append(f"held by {row['holder']}")
    if row["instead"]:
        parts.append(f"took {row['instead']} instead")
    said = ", ".join(part for part in parts if part)
    return f"{row['verdict']}: {said}" if said else str(row["verdict"])


def _before_and_after(scene: Scene, found: Finding) -> Iterator[Component]:
    """What the lanes around a finding show just before it and at it, counters if they changed."""
    lane = scene.timeline.lane_of(found)
    if lane is None or found.ts_ns is None:
        return
    around = list(_around(scene, scene.timeline.lanes[lane]))
    moments = (found.ts_ns - 1, found.ts_ns)
    rows = []
    for name, lanes in groupby(around, _name_near):
        near = list(lanes)
        before, after = (_shown(scene, near, moment) for moment in moments)
        if before != after or near[0].section != "counters":
            rows.append((name, before, after))
    yield heading("state before · after")
    yield facts(rows)


def _around(scene: Scene, own: Lane) -> Iterator[Lane]:
    for lane in scene.timeline.lanes:
        same_section = lane.section == own.section and lane.rank == own.rank
        in_group = own.section == "core groups" and same_section and lane.group == own.group
        is_own = same_section and (lane.group, lane.label) == (own.group, own.label)
        if in_group or is_own or (lane.section == "counters" and not lane.group):
            yield lane


def _name_near(lane: Lane) -> str:
    return lane_name(lane) if lane.section == "requests" else lane.label


def _shown(scene: Scene, lanes: list[Lane], ts_ns: int) -> str:
    """What sub-lanes of one lane show together."""
    spans = (scene.timeline.at(lane.id, ts_ns) for lane in lanes)
    labels = [span.label or STATES[span.state].name for span in spans if span]
    return " + ".join(labels) or "idle"


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
    row = scene.timeline.row(span.ref)
    yield facts(_cells(scene, row))
    if arguments := _arguments(row.get("args")):
        yield heading("arguments")
        yield facts(arguments)
    yield html.Div(html.Button("copy link", id="copy", type="button"), className="links")


def _cells(scene: Scene, row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in row.items():
        if value is None or name in ("ts_ns", "dur_ns", "args"):
            continue
        label = name.removesuffix("_ns").replace("_", " ")
        if name.endswith("_ns"):
            yield label, when(value, scene.timeline, 1)
        elif isinstance(value, bool):
            yield label, "yes" if value else "no"
        else:
            yield label, count(value) if isinstance(value, float) else str(value)


def _arguments(text: str | None) -> list[tuple[str, str]]:
    """A span's arguments, which are JSON text; as they stand where they are not."""
    if not text:
        return []
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        return [("args", text)]
    if not isinstance(arguments, dict):
        return [("args", text)]
    shown = list(arguments.items())[:MAX_FACTS]
    return [(str(n), v if isinstance(v, str) else json.dumps(v)) for n, v in shown]


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
        yield html.P(" ".join(scene.result.not_applicable), className="muted")
    yield heading("where to begin")
    yield html.P("Press n for the next finding, or click one below.")
    yield html.P("Drag to move, wheel to zoom, click a span to read it, ? for all keys.")


def _rules_that_fired(scene: Scene) -> list[tuple[str, int]]:
    return [(code, number) for code, number in scene.result.counts.items() if number]
