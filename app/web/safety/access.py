"""Who is answered: requests by this machine's own name, of our own page, and who has the token.

A page of the web may point a name of its own at this machine and then read what listens here, so
`Host` has to be an address or a name that is ours. `Origin` says which page a browser asks for, and
has to be this one. Where other machines reach the page a token is needed as well: it comes once in
the address and then in a cookie that no script can read and no other site can send.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit

from flask import Flask, Response, abort, redirect, request

from stepscope.app.web.safety.hosts import is_loopback

TOKEN = "token"  # noqa: S105 - the name of it in an address
MOST_BYTES = 1_000_000
"""Bytes that a request may hold: the page posts a view, and no view is as long."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may look at a page that listens on `host`; nobody needs a token where it is loopback."""

    host: str
    token: str | None = None
    _session: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @classmethod
    def to(cls, host: str) -> Access:
        """The access to a page on this host, with a new token where other machines reach it."""
        return cls(host, None if is_loopback(host) else secrets.token_urlsafe(32))

    def query(self, view: str = "") -> str:
        """The query of the address to print: the token, where one is needed, and a view."""
        if self.token is None:
            return view
        return f"?{TOKEN}={self.token}{view.replace('?', '&', 1)}"

    def is_ours(self, name: str) -> bool:
        """Whether this is a name by which the page may be called."""
        if is_loopback(self.host):
            return is_loopback(name)
        return _is_address(name) or name.lower() in {self.host.lower(), *_own_names()}

    def is_known(self, given: str, secret: str) -> bool:
        """Whether who asks has the secret; it takes as long whatever is given."""
        return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def guard(server: Flask, access: Access) -> None:
    """Answer nobody else, before anything else of a request is looked at."""
    server.config["MAX_CONTENT_LENGTH"] = MOST_BYTES

    def check() -> Response | None:
        if not access.is_ours(_name(request.host)):
            abort(403, "this page is not called that")
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"{request.scheme}://{request.host}":
            abort(403, "another page has nothing to ask here")
        return None if access.token is None else _ask_for_token(access, access.token)

    asked_first: list[Callable[[], Response | None]] = [check]
    before = server.before_request_funcs.setdefault(None, [])
    before[:0] = asked_first


def _ask_for_token(access: Access, token: str) -> Response | None:
    """Let in who has the cookie; who brings the token gets it, at an address without the token."""
    cookie = f"stepscope-{request.environ.get('SERVER_PORT', '')}"
    given = [value for name, value in parse_qsl(request.query_string.decode("latin-1"))
             if name == TOKEN]  # fmt: skip
    if given and access.is_known(given[-1], token):
        answer = _without_token()
        answer.set_cookie(cookie, access._session, httponly=True, samesite="Strict")
        return answer
    if not access.is_known(request.cookies.get(cookie, ""), access._session):
        abort(401, "open the address that stepscope web has printed: it holds a token")
    return None


def _without_token() -> Response:
    pairs = parse_qsl(request.query_string.decode("latin-1"), keep_blank_values=True)
    left = urlencode([pair for pair in pairs if pair[0] != TOKEN], safe=",@/")
    answer = redirect(f"/?{left}" if left else "/", 303)
    assert isinstance(answer, Response)
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    """Whether it is an address and no name: nobody can point an address somewhere else."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _own_names() -> set[str]:
    name = socket.gethostname().lower()
    return {name, f"{name}.local", "localhost"}
