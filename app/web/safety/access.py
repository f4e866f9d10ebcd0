"""Who is answered: requests by this machine's own name, of our own page, and who has the token.

A page of the web may point a name of its own at this machine and then read what listens here, so
`Host` has to be an address or a name that is ours. `Origin` says which page a browser asks for, and
has to be this one. A token is needed as well, as other users of this machine reach loopback, too.
It comes once in the address, and then in a cookie that no script can read and no other site can
send.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from flask import Flask, Response, redirect, request

from stepscope.app.web.safety.clients import ADMIT
from stepscope.app.web.safety.hosts import is_loopback
from stepscope.ingest.errors import ConfigError

TOKEN = "token"  # noqa: S105 - the name of it in an address
MOST_BYTES = 1_000_000
"""Bytes that a request may hold: the page posts a view, and no view is as long."""
SHORTEST = 16
"""Characters of a token that a user chooses."""
TO_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>stepscope</title>
<meta http-equiv="refresh" content="0;url={address}"></head>
<body><a href="{address}">to the page</a></body></html>
"""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may look at a page that listens on `host`: who has the token, or anyone without one."""

    host: str
    token: str | None = None
    _session: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @classmethod
    def to(cls, host: str, token: str | bool = True) -> Access:
        """The access to a page on this host: True is for a new random token of 256 bits.

        False is for none. Raises ConfigError for none where other machines reach it, and for a
        token that could be guessed or does not fit into an address.
        """
        if token is True:
            return cls(host, secrets.token_urlsafe(32))
        if token is False:
            if not is_loopback(host):
                todo = "leave out --no-token, or --host"
                raise ConfigError(
                    "other machines reach it, so a token is needed", where=host, todo=todo
                )
            return cls(host)
        if len(token) < SHORTEST or not token.isascii() or not token.isprintable():
            what = f"the token needs {SHORTEST} ASCII characters or more"
            raise ConfigError(what, todo="leave it out for a random one")
        return cls(host, token)

    def query(self, view: str = "") -> str:
        """The query of the address to print: the token, where one is needed, and a view."""
        if self.token is None:
            return view
        return f"?{urlencode({TOKEN: self.token})}{view.replace('?', '&', 1)}"

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
            return _refused("this page is not called that: use the address that was printed")
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"{request.scheme}://{request.host}":
            return _refused("another page has nothing to ask here")
        return None if access.token is None else _ask_for_token(access, access.token)

    asked_first: list[Callable[[], Response | None]] = [check]
    before = server.before_request_funcs.setdefault(None, [])
    before[:0] = asked_first


def _refused(why: str) -> Response:
    return Response(f"{why}\n", 403, {"Cache-Control": "no-store"}, mimetype="text/plain")


def _ask_for_token(access: Access, token: str) -> Response | None:
    """Let in who has the cookie; who brings the token gets it, at an address without the token."""
    cookie = f"stepscope-{_port()}"
    given = [value for name, value in parse_qsl(request.query_string.decode("latin-1"))
             if name == TOKEN]  # fmt: skip
    if given and access.is_known(given[-1], token):
        answer = _without_token()
        answer.set_cookie(cookie, access._session, httponly=True, samesite="Strict")
        return answer
    if not access.is_known(request.cookies.get(cookie, ""), access._session):
        return _refused("open the address that stepscope web has printed: it holds a token")
    request.environ.get(ADMIT, lambda: None)()
    return None


def _port() -> str:
    """The port that the browser knows, which a tunnel may have changed: cookies have none."""
    try:
        port = urlsplit(f"//{request.host}").port
    except ValueError:
        port = None
    return str(port or request.environ.get("SERVER_PORT", ""))


def _without_token() -> Response:
    """Send on to the same address without the token.

    A browser that comes from elsewhere, such as from a link in a mail or from a file, would follow
    a redirect without the cookie, as another site began it. So our own page sends it on.
    """
    pairs = parse_qsl(request.query_string.decode("latin-1"), keep_blank_values=True)
    left = urlencode([pair for pair in pairs if pair[0] != TOKEN], safe=",@/")
    path = quote(f"{request.root_path}{request.path}".lstrip("/\\"))
    address = f"/{path}?{left}" if left else f"/{path}"
    if request.headers.get("Sec-Fetch-Site") == "cross-site":
        answer = Response(TO_PAGE.format(address=escape(address)), mimetype="text/html")
    else:
        sent_on = redirect(address, 303)
        assert isinstance(sent_on, Response)
        answer = sent_on
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
