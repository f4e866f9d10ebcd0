"""The drawer's findings: one line each, and a link to where it is on the timeline."""

from __future__ import annotations

from dash import html
from dash.development.base_component import Component

from stepscope.analyzers.findings.finding import Finding
from stepscope.app.palette import SEVERITY_MARKS
from stepscope.app.present.where import place, when
from stepscope.app.printable import plain
from stepscope.app.units import count
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.view import View

PAGE = 200


def findings_pane(loaded: LoadedTrace, view: View) -> Component:
    """A page of findings, worst first; the one that is selected stands out."""
    if not loaded.findings:
        return html.P(loaded.without_findings, className="controls muted")
    keys = list(loaded.findings)
    page = keys.index(view.finding) // PAGE if view.finding else view.page - 1
    page = min(page, (len(keys) - 1) // PAGE)
    shown = keys[page * PAGE : (page + 1) * PAGE]
    lines = [_line(loaded, view, key, loaded.findings[key]) for key in shown]
    return html.Div([*lines, *_pager(view, page, len(keys))], className="found")


def _line(loaded: LoadedTrace, view: View, key: str, found: Finding) -> Component:
    severity = str(found.severity)
    times = f" ×{count(found.count)}" if found.count > 1 else ""
    cells = [
        html.Span(SEVERITY_MARKS[severity].glyph, className=severity, title=severity),
        html.Span(found.code),
        html.Span(found.name),
        html.Span(place(found, loaded.timeline), className="where"),
        html.Span(plain(found.message), title=plain(found.message)),
        html.Span(f"{when(found.ts_ns, loaded.timeline)}{times}", className="when"),
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
