"""Serving: over stdin and stdout for a client that started it, or over HTTP on this machine."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from stepscope.app.ending import is_ending
from stepscope.app.mcp.calls import Calls
from stepscope.app.mcp.desk.folders import Folders
from stepscope.app.mcp.guarded import Guarded
from stepscope.app.mcp.protocol_server import server_of
from stepscope.ingest.errors import ConfigError

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

HOST = "127.0.0.1"
PATH = "/mcp"
MOST_BODY_BYTES = 1_000_000
MOST_SESSIONS, MOST_CONNECTIONS = 100, 128
IDLE_S = 30 * 60


def server_over(folders: Sequence[Path], open_trace: Callable[[Path], Trace]) -> Server[Any]:
    """A server over what lies below some folders; raises ConfigError where one is none."""
    return server_of(Calls(Folders(folders), open_trace))


def serve_stdio(server: Server[Any]) -> None:
    """Talk over stdin and stdout until the client goes; nothing else is written to stdout."""

    async def talk() -> None:
        asyncio.get_running_loop().set_exception_handler(_unless_ending)
        async with stdio_server() as (read, write), anyio.create_task_group() as tasks:
            passed, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)

            async def answer_errors() -> None:
                async with passed:
                    async for item in read:
                        if not isinstance(item, Exception):
                            await passed.send(item)
                        elif error := _error_of(item):
                            await write.send(SessionMessage(error))

            tasks.start_soon(answer_errors)
            await server.run(messages, write, server.create_initialization_options())
            tasks.cancel_scope.cancel()

    anyio.run(talk)


def _unless_ending(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Tell of an error in a task, unless a signal ends the command and so its tasks."""
    if not is_ending():
        loop.default_exception_handler(context)


def _error_of(problem: Exception) -> types.JSONRPCError | None:
    """The answer to a line that is not a message, whose id is unknown; None to an empty line.

    The SDK logs such a line and answers nothing, so that a client would wait for ever.
    """
    code, message = types.INVALID_REQUEST, "not a JSON-RPC 2.0 message"
    if isinstance(problem, ValidationError):
        found = problem.errors(include_url=False)[0]
        if found["type"] == "json_invalid":
            code, message = types.PARSE_ERROR, f"not JSON: {found['ctx']['error']}"
            if not str(found["input"]).strip():
                return None
    error = types.ErrorData(code=code, message=message)
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=error)


def serve_http(server: Server[Any], port: int, say: Callable[[str], None]) -> None:
    """Serve over HTTP on loopback until Ctrl-C or SIGTERM; `say` is told address and token.

    Raises ConfigError where the port is taken.
    """
    import uvicorn  # noqa: PLC0415 - stdio needs none of it
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415 - the same

    listener = _listening(port)
    taken = int(listener.getsockname()[1])
    token = secrets.token_urlsafe(32)
    # `Guarded` has looked at Host and Origin before; the SDK's own look stays on behind it.
    hosts = [f"{name}:{taken}" for name in (HOST, "localhost")]
    security = TransportSecuritySettings(
        allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
    )
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        host=HOST,
        transport_security=security,
        max_request_body_size=MOST_BODY_BYTES,
        max_sessions=MOST_SESSIONS,
        session_idle_timeout=IDLE_S,
    )
    say(f"stepscope mcp: http://{HOST}:{taken}{PATH}  (Ctrl-C stops it)")
    say(f"token: {token}")
    config = uvicorn.Config(
        Guarded(app, taken, token),
        log_level="warning",
        access_log=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
        server_header=False,
        lifespan="on",
    )
    uvicorn.Server(config).run(sockets=[listener])


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(MOST_CONNECTIONS)  # who reads the address may ask at once
    except OSError as error:
        listener.close()
        todo = "name another with --port, or leave it out for a free one"
        raise ConfigError(f"port {port} cannot be had: {error.strerror}", todo=todo) from None
    return listener
