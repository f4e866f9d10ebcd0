"""From a zoom to its picture on screen, in headless Chromium, over a million spans; or 1e8.

`canvas` is the page as it is. `heatmap` draws the same answers of the timeline model as one uint8
Plotly heatmap that is sent as a Patch, the alternative that docs/decisions/0003 speaks of. Both are
timed from the query to the frame after the one that shows it, at the same zooms. `blocks` is the
page over the trace of `bench_timeline`, a million spans on 66 lanes, and with `--long` 1e8.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
from dash import Dash, Input, Output, Patch, dcc, html
from playwright.sync_api import Page
from plotly import graph_objects as go

from stepscope.analyzers.check.run import CheckResult
from stepscope.app.palette import STATES
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.viewport import ZOOM
from stepscope.app.web import listen
from stepscope.app.web.server import create_app
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.trace import Trace
from tests.app.web.in_browser.browser import ABSENT, chromium
from tests.bench.bench_timeline import MANY, ROOT, write_blocks

NUM_SPANS = 1_000_000
NUM_TRACKS = 40
ZOOMS = 20


def measure(num_spans: int = NUM_SPANS, *, long: bool = False) -> list[dict[str, Any]]:
    """Return a row for each way to draw: median, worst, and the time to the first picture."""
    trace = spans_of(num_spans)
    with chromium() as browser:
        if browser is None:
            return [{"drawn by": ABSENT}]
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        rows = [
            _row("canvas", num_spans, page, _page_of(trace), CANVAS_READY, CANVAS_ZOOM),
            _row("heatmap", num_spans, page, _heatmap(trace), HEATMAP_READY, HEATMAP_ZOOM),
        ]
        return rows + [_blocks(each, page) for each in (num_spans, *([MANY] if long else []))]


def _page_of(trace: Trace) -> Dash:
    return create_app(trace, CheckResult(trace.name, (), {}, {}, ()))


def _blocks(num_spans: int, page: Page) -> dict[str, Any]:
    """The page over blocks on disk, its index beside what was cached."""
    (ROOT / "out").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "out") as folder:
        path = Path(folder) / "blocks.trace"
        write_blocks(path, num_spans // 2)
        with mock.patch.dict(os.environ, STEPSCOPE_CACHE=str(Path(folder) / "cache")):
            app = _page_of(Trace.open(path))
            return _row("blocks", num_spans, page, app, CANVAS_READY, CANVAS_ZOOM)


def spans_of(num_spans: int) -> Trace:
    """Spans of random length and place on tracks, in two categories."""
    random = np.random.default_rng(0)
    per_track = num_spans // NUM_TRACKS
    place = np.tile(np.arange(per_track), NUM_TRACKS)
    spans = pl.DataFrame(
        {
            "ts_ns": place * 1000 + random.integers(0, 400, len(place)),
            "dur_ns": random.integers(50, 600, len(place)),
            "track": np.repeat([f"stream {n:02}" for n in range(NUM_TRACKS)], per_track),
            "name": np.where(place % 3, "attention", "mlp"),
            "category": np.where(place % 3, "kernel", "op"),
        }
    )
    return Trace.from_tables({"spans": spans}, Manifest(producer="bench"), name="bench")


def _row(name: str, num_spans: int, page: Page, app: Dash, ready: str, zoom: str) -> dict[str, Any]:
    listener = listen.bind("127.0.0.1", 0)
    serving = (listener, app.server, "127.0.0.1")
    threading.Thread(target=listen.until_stopped, args=serving, daemon=True).start()
    began = time.perf_counter()
    page.goto(listen.address("127.0.0.1", listener.getsockname()[1]))
    page.wait_for_selector(ready)
    first_s = time.perf_counter() - began
    page.wait_for_timeout(2000)  # until the charts beside it are drawn too
    page.evaluate(zoom, 1 / ZOOM)
    took = [page.evaluate(zoom, 1 / ZOOM if at < ZOOMS // 2 else ZOOM) for at in range(ZOOMS)]
    ms = {"median_ms": statistics.median(took), "worst_ms": max(took), "first_ms": 1000 * first_s}
    return {"drawn by": name, "spans": num_spans, **ms}


CANVAS_READY = "#position:not(:empty)"
CANVAS_ZOOM = """(factor) => new Promise(async (done) => {
  const { MOVES } = await import("/assets/stage.js");
  const { seen } = await import("/assets/seen.js");
  const { picture } = seen;
  const field = { configurable: true, enumerable: true };
  const began = performance.now();
  const take = (taken) => {
    Object.defineProperty(seen, "picture", { ...field, writable: true, value: taken });
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began)));
  };
  Object.defineProperty(seen, "picture", { ...field, get: () => picture, set: take });
  MOVES[factor < 1 ? "zoom-in" : "zoom-out"]();
})"""

HEATMAP_READY = ".heatmaplayer image"
HEATMAP_ZOOM = """(factor) => new Promise((done) => {
  const chart = document.querySelector(".js-plotly-plot");
  const began = performance.now();
  chart.once("plotly_afterplot", () =>
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began))));
  window.span = (window.span || 1) * factor;
  dash_clientside.set_props("span", { data: window.span });
})"""


def _heatmap(trace: Trace) -> Dash:
    """One uint8 heatmap with separator rows of their own, as wide and high as the page's canvas."""
    timeline = Timeline.of(trace)
    lanes = [lane.id for lane in timeline.lanes]
    first, last = timeline.bounds

    def rows(span: float) -> Any:
        picture = timeline.query(first, first + max(1000, int((last - first) * span)), 1000, lanes)
        striped = np.zeros((5 * len(lanes), 1000), np.uint8)
        for part in range(4):
            striped[part::5] = picture.state
        return striped

    scale = [[at / (len(STATES) - 1), state.colour] for at, state in enumerate(STATES)]
    drawn = go.Heatmap(z=rows(1), zsmooth=False, colorscale=scale, showscale=False, zmin=0, zmax=15)
    chart = dcc.Graph(id="chart", figure=go.Figure(drawn), style={"height": "560px"})
    app = Dash(__name__, add_log_handler=False)
    app.layout = html.Div([dcc.Store(id="span", data=1), chart])

    @app.callback(Output("chart", "figure"), Input("span", "data"), prevent_initial_call=True)
    def zoom(span: float) -> Patch:
        patch = Patch()
        patch["data"][0]["z"] = rows(span)
        return patch

    return app
