"""What answers at the page's address: the page to open traces from, and the pages of those opened.

It is there on loopback alone, as who has it may read whatever file its user may read.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from flask import Flask, Response, abort, jsonify, redirect, request, send_from_directory

from stepscope.analyzers.summary.slo import Slo
from stepscope.app.kept import recent
from stepscope.app.live.opener import Opener
from stepscope.app.printable import plain
from stepscope.app.web.safety.access import Access, guard
from stepscope.app.web.shades import declared
from stepscope.app.web.start.dropped import Dropped
from stepscope.app.web.start.openings import Openings
from stepscope.app.web.start.recent_page import recent_page
from stepscope.ingest.errors import ConfigError, StepscopeError

PREFIX = "/open/"
"""Where the page to open from is; the page of the third trace that was opened is at `/open/3/`."""
ASSETS = Path(__file__).with_name("assets")
Environ = dict[str, Any]
Answer = Iterable[bytes]
LONGEST = 4_096
"""Characters of a path."""


class Desk:
    """A WSGI application; `first` is the page of the trace that was named, where one was.

    Whatever is opened is held against the `slo`.
    """

    def __init__(
        self, first: Flask | None, access: Access, opener: Opener, slo: Slo | None = None,
        dropped: Dropped | None = None,
    ) -> None:  # fmt: skip
        self._first = first
        self._dropped = dropped or Dropped()
        self._openings = Openings(opener, slo, PREFIX, lambda server: guard(server, access))
        self._own = self._served()
        guard(self._own, access)

    def __call__(self, environ: Environ, start: Callable[..., Any]) -> Answer:
        """Answer from the page of a trace that was opened, from the first, or from the desk."""
        path = str(environ.get("PATH_INFO", ""))
        number, slash, rest = path.removeprefix(PREFIX).partition("/")
        is_number = number.isascii() and number.isdecimal() and len(number) < 10
        if path.startswith(PREFIX) and slash and is_number:
            opening = self._openings.get(int(number))
            if opening and opening.server:
                environ["SCRIPT_NAME"] = f"{environ.get('SCRIPT_NAME', '')}{PREFIX}{number}"
                environ["PATH_INFO"] = f"/{rest}"
                return opening.server(environ, start)
            return self._own(environ, start)
        if self._first is None or path.startswith(PREFIX):
            return self._own(environ, start)
        return self._first(environ, start)

    def close(self) -> None:
        """Take away what was dropped."""
        self._dropped.close()

    def _served(self) -> Flask:
        server = Flask("stepscope.app.web.start", static_folder=None)
        server.after_request(_forbid_elsewhere)
        server.add_url_rule("/", view_func=lambda: redirect(PREFIX), endpoint="to-desk")
        server.add_url_rule(PREFIX, view_func=self._page)
        server.add_url_rule(f"{PREFIX}assets/<name>", view_func=_asset)
        server.add_url_rule(f"{PREFIX}begin", view_func=self._begin, methods=["POST"])
        server.add_url_rule(f"{PREFIX}drop", view_func=self._drop, methods=["POST"])
        server.add_url_rule(f"{PREFIX}progress/<int:number>", view_func=self._progress)
        server.add_url_rule(f"{PREFIX}<int:number>/", view_func=_closed)
        return server

    def _page(self) -> str:
        return recent_page(recent.recent(), self._dropped.most)

    def _begin(self) -> Response:
        """Begin to open a path, or one of the recent ones by its place."""
        asked = request.get_json(silent=True)
        if not isinstance(asked, dict):
            abort(400, "a path or the number of a recent trace is wanted")
        path, number = asked.get("path"), asked.get("recent")
        listed = recent.recent()
        try:
            if isinstance(number, int) and 0 <= number < len(listed):
                return _begun(self._openings.begin(listed[number]))
            if not isinstance(path, str) or not path.strip() or len(path) > LONGEST:
                raise ConfigError("no file is named", todo="write the path of one")
            return _begun(self._openings.begin(Path(path.strip()).expanduser()))
        except (StepscopeError, ValueError, OSError, RuntimeError) as error:
            return jsonify({"failed": plain(str(error))})

    def _drop(self) -> Response:
        """Take a file that is dropped, and begin to open it."""
        request.max_content_length = self._dropped.most + 1
        name = str(request.args.get("name", ""))[:LONGEST]
        try:
            path = self._dropped.take(name, request.content_length, request.stream)
            return _begun(self._openings.begin(path, is_kept=False))
        except StepscopeError as error:
            answer = jsonify({"failed": plain(str(error))})
            answer.headers["Connection"] = "close"  # what is still on its way is not read
            return answer

    def _progress(self, number: int) -> Response:
        opening = self._openings.get(number)
        if opening is None:
            abort(404, "nothing is opened under this number")
        return jsonify(
            {
                "what": opening.what,
                "done": opening.done,
                "total": opening.total,
                "failed": opening.failed,
                "href": f"{PREFIX}{number}/" if opening.server else "",
            }
        )


def _begun(number: int) -> Response:
    return jsonify({"number": number})


def _closed(number: int) -> tuple[str, int]:
    return f"trace {number} is not open any more: open it again at {PREFIX}", 404


def _asset(name: str) -> Response:
    return send_from_directory(ASSETS, name)


def _forbid_elsewhere(answer: Response) -> Response:
    """Let the browser run only this page's own script, and talk only to this server."""
    style = base64.b64encode(hashlib.sha256(declared().encode()).digest()).decode("ascii")
    answer.headers["Content-Security-Policy"] = (
        f"default-src 'self'; script-src 'self'; style-src 'self' 'sha256-{style}'; "
        "img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers["Referrer-Policy"] = "no-referrer"
    answer.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    answer.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    return answer
