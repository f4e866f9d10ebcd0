"""The Dash application: one page over one trace, all of it served from here."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from dash import Dash
from flask import g

from stepscope.app.light import surfaces
from stepscope.app.palette import DECODE, PREFILL, STATES
from stepscope.app.units import of_one_trace
from stepscope.app.web.callbacks import answer
from stepscope.app.web.refusals import refuse
from stepscope.app.web.shades import declared
from stepscope.app.web.skeleton.layout import layout
from stepscope.app.web.source import Source

if TYPE_CHECKING:
    from flask import Response


SHELL = """<!DOCTYPE html>
<html lang="en">
  <head>
    {%metas%}
    <title>{%title%}</title>
    <link rel="icon" href="data:image/svg+xml,ICON">
    <style>COLOURS</style>
    {%css%}
  </head>
  <body>
    {%app_entry%}
    <footer>{%config%}{%scripts%}{%renderer%}<script type="module" src="PAGE"></script></footer>
  </body>
</html>
"""
BEGUN_BY_PAGE = "// Dash is begun by page.js, when all modules are there."
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
    '<rect width="16" height="16" rx="3" fill="{raised}"/>'
    '<path d="M2 3h7v3H2z" fill="{prefill}"/><path d="M5 7h9v3H5z" fill="{decode}"/>'
    '<path d="M2 11h5v3H2z" fill="{accent}"/></svg>'
)


def build(source: Source, prefix: str = "/") -> Dash:
    """The page over what a source gives; nothing on it comes from, or goes to, another machine.

    `prefix` is where its addresses begin.
    """
    named = surfaces(is_light=False)
    states = {"prefill": STATES[PREFILL].colour, "decode": STATES[DECODE].colour}
    icon = quote(ICON.format(**named, **states))
    app = Dash(
        __name__,
        assets_folder=str(Path(__file__).with_name("assets")),
        assets_ignore=r"\.js$",
        index_string=SHELL.replace("COLOURS", declared()).replace("ICON", icon),
        title="stepscope",
        routes_pathname_prefix="/",
        requests_pathname_prefix=prefix,
        update_title="",
        serve_locally=True,
        add_log_handler=False,
        suppress_callback_exceptions=True,
        enable_mcp=False,
    )
    # Dash would load the scripts as classic ones, and begin before the page's own are there.
    app.renderer = BEGUN_BY_PAGE
    app.index_string = app.index_string.replace("PAGE", app.get_asset_url("page.js"))
    app.layout = lambda: layout(source.now, opens_others=source.opens_others)
    _say_whether_times(app, source)
    answer(app, source)
    refuse(app)
    _forbid_elsewhere(app)
    return app


def _say_whether_times(app: Dash, source: Source) -> None:
    """Let each request's words count times, or positions where the trace has no clock."""

    def begin() -> None:
        g.clock = ExitStack()
        g.clock.enter_context(of_one_trace(has_times=source.now.has_clock))

    def end(_: BaseException | None) -> None:
        if clock := g.pop("clock", None):
            clock.close()

    app.server.before_request(begin)
    app.server.teardown_request(end)


def _forbid_elsewhere(app: Dash) -> None:
    """Let the browser run only the page's own scripts and talk only to this server.

    So that text of a trace could do nothing even if it were ever taken for markup. Plotly and React
    set styles inline, and Plotly makes images of blobs.
    """
    scripts = " ".join(["'self'", *app.csp_hashes()])
    policy = (
        f"default-src 'self'; script-src {scripts}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )

    def forbid(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = policy
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
        return response

    app.server.after_request(forbid)
