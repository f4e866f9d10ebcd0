"""Who is answered over HTTP: whoever has the token, by a name of this machine, of no other page.

A page of the web may point a name of its own at this machine, so `Host` has to be ours; `Origin`
says which page a browser asks for, and has to be ours as well. The token is new at each start, and
comes with every request. All of that is looked at before anything else of a request is.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
NAMES = ("127.0.0.1", "localhost")
BEARER = "bearer "


class Guarded:
    """An application that answers nobody else."""

    def __init__(self, app: App, port: int, token: str) -> None:
        self._app = app
        self._token = token
        self._hosts = {f"{name}:{port}" for name in NAMES}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or say why not; what is no request is the application's own."""
        if scope["type"] == "http" and (refusal := self._refusal(scope["headers"])):
            await _say(send, *refusal)
            return
        if scope["type"] == "websocket":
            return
        await self._app(scope, receive, send)

    def _refusal(self, headers: list[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        given: dict[str, list[str]] = {}
        for name, value in headers:
            given.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts, origins = given.get("host", []), given.get("origin", [])
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return 421, "this server is not called that"
        if any(origin not in self._origins for origin in origins):
            return 403, "another page has nothing to ask here"
        tokens = given.get("authorization", [])
        if len(tokens) != 1 or not self._is_known(tokens[0]):
            return 401, "send the token that stepscope mcp has printed, as Authorization: Bearer"
        return None

    def _is_known(self, said: str) -> bool:
        """Whether it is the token; it takes as long whatever is given."""
        scheme, token = said[: len(BEARER)].lower(), said[len(BEARER) :].strip()
        is_token = hmac.compare_digest(token.encode("utf-8", "replace"), self._token.encode())
        return scheme == BEARER and is_token


async def _say(send: Send, status: int, text: str) -> None:
    body = text.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"),
               (b"content-length", str(len(body)).encode())]  # fmt: skip
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
