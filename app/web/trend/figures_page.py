"""The page of a trend: a figure for each metric, in one file of which nothing is fetched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from plotly.io import to_json
from plotly.offline import get_plotlyjs

from stepscope.analyzers.many_runs.trend import Group, Trend
from stepscope.app.present.trend.changes_said import (
    change_said,
    group_name,
    group_size,
    heading,
    unseen,
    verdict,
)
from stepscope.app.web.report.markup import tag, text
from stepscope.app.web.report.one_file import digest, one_file
from stepscope.app.web.shades import declared, figure_in_light
from stepscope.app.web.trend.metric_figure import trend_figure

SCRIPTS = """<script type="application/json" id="figures">{figures}</script>
<script>{plotly}</script>
<script>{script}</script>"""
POLICY = (
    "default-src 'none'; script-src 'sha256-{plotly}' 'sha256-{script}'; "
    "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
)
"""Styles may be inline, as Plotly writes some; nothing else runs or is fetched."""
SCRIPT = """
const figures = JSON.parse(document.getElementById("figures").textContent);
const wantsLight = matchMedia("(prefers-color-scheme: light)");
function draw() {
  for (const [place, pair] of figures.entries()) {
    const { data, layout } = pair[wantsLight.matches ? 1 : 0];
    Plotly.react(`figure-${place}`, data, layout, { displayModeBar: false, responsive: true });
  }
}
wantsLight.addEventListener("change", draw);
draw();
"""
STYLE = """
body { background: var(--background); color: var(--text); margin: 0 auto; max-width: 1300px;
  padding: 16px 24px 60px; font: 13px/1.45 system-ui, -apple-system, "Segoe UI", "Cantarell",
  "DejaVu Sans", sans-serif; font-variant-numeric: tabular-nums; }
h1 { font-size: 16px; margin: 0 0 4px; }
h2 { border-top: 1px solid var(--border); font-size: 14px; margin: 24px 0 6px; padding-top: 14px; }
h3 { font-size: 13px; margin: 14px 0 0; }
p, li { max-width: 110ch; overflow-wrap: anywhere; margin: 2px 0; }
.muted { color: var(--muted); }
.figure { height: 240px; }
"""


def trend_page(of: Trend) -> str:
    """The whole page: what changed, and a figure for each metric that any run tells."""
    plotly = get_plotlyjs()
    figures: list[list[Any]] = []
    body = "\n".join(_body(of, figures))
    style = f"{declared()}\n{STYLE}"
    # Text of a trace cannot end the element that it lies in.
    packed = json.dumps(figures, allow_nan=False).replace("<", "\\u003c")
    policy = POLICY.format(plotly=digest(plotly), script=digest(SCRIPT))
    scripts = SCRIPTS.format(figures=packed, plotly=plotly, script=SCRIPT)
    return one_file("stepscope trend", policy, style, f"{body}\n{scripts}")


def _body(of: Trend, figures: list[list[Any]]) -> Iterator[str]:
    yield tag("h1", text(verdict(of)))
    yield tag("p", text(heading(of)), "muted")
    yield "<noscript><p>A script draws the figures; what changed is told without it.</p></noscript>"
    for group in of.groups:
        yield tag("h2", text(f"{group_name(group)}: {group_size(group)}"))
        changes = [
            tag("li", text(change_said(of, group, metric, change)))
            for metric in group.metrics
            for change in metric.changes
        ]
        if changes:
            yield tag("ul", "".join(changes))
        yield from (tag("p", text(line), "muted") for line in unseen(group))
        yield from _figures(of, group, figures)


def _figures(of: Trend, group: Group, figures: list[list[Any]]) -> Iterator[str]:
    for metric in group.metrics:
        if not metric.known:
            continue
        figure = trend_figure(of, group, metric)
        yield tag("h3", text(metric.metric))
        yield f'<div class="figure" id="figure-{len(figures)}"></div>'
        figures.append([json.loads(figure.to_json()), _plain_arrays(figure_in_light(figure))])


def _plain_arrays(figure: dict[str, Any]) -> Any:
    return json.loads(to_json(figure, validate=False))
