"""The drawer's findings: one line each, and a link to where it is on the timeline."""

from __future__ import annotations

from dash import html
from dash.development.base_component import Component

from stepscope.analyzers.findings.finding import Finding
from stepscope.app.palette import SEVERITY_MARKS
from stepscope.app.present.where import place, when
from stepscope.app.printable import plain
from stepscope.app.units import count
from stepscope.app.web.scene import Scene
from stepscope.app.web.view import View

PAGE = 200


def findings_pane(scene: Scene, view: View) -> Component:
    """A page of findings, worst first; the one that is selected stands out."""
    if not scene.findings:
        return html.P(scene.result.coverage.without_findings, className="controls muted")
    keys = list(scene.findings)
    page = keys.index(view.finding) // PAGE if view.finding else view.page - 1
    page = min(page, (len(keys) - 1) // PAGE)
    shown = keys[page * PAGE : (page + 1) * PAGE]
    lines = [_line(scene, view, key, scene.findings[key]) for key in shown]
    return html.Div([*lines, *_pager(view, page, len(keys))])


def _line(scene: Scene, view: View, key: str, found: Finding) -> Component:
    severity = str(found.severity)
    times = f" ×{count(found.count)}" if found.count > 1 else ""
    cells = [
        html.Span(SEVERITY_MARKS[severity].glyph, className=severity, title=severity),
        html.Span(found.code),
        html.Span(found.name),
        html.Span(place(found, scene.timeline), className="where"),
        html.Span(plain(found.message), title=plain(found.message)),
        html.Span(f"{when(found.ts_ns, scene.timeline)}{times}", className="when"),
    ]
    current = " current" if key == view.finding else ""
    return html.A(cells, href=view.link(finding=key), className=f"finding{current}")


def _pager(view: View, page: int, total: int) -> list[Component]:
    pages = range(-(-total // PAGE))
    if len(pages) < 2:
        return []
    links = [
        html.A(
            count(at + 1), href=view.link(page=at + 1, finding=None), className="on" * (at == page)
        )
        for at in pages
    ]
    return [html.Div(links, className="controls")]
