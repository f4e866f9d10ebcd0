"""Listening: a port that is free, a threaded server, a clean stop, and nobody else's pages."""

from __future__ import annotations

import errno
import ipaddress
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, abort, request
from werkzeug.serving import WSGIRequestHandler, make_server

from stepscope.ingest.errors import ConfigError


class Quiet(WSGIRequestHandler):
    """Answers requests without a line in a log for each."""

    def log(self, type: str, message: str, *args: Any) -> None:
        """Say nothing."""


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens on `host` at `port`, or at a free port when that one is taken.

    Raises ConfigError when it cannot listen there at all.
    """
    if not host:  # the system takes it for every address that it has
        raise ConfigError("an empty --host is no address", todo="try --host 127.0.0.1")
    try:
        return _listen(host, port)
    except OverflowError as error:
        raise ConfigError(f"{port} is not a port", todo="choose a port from 0 to 65535") from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE and port:
            return bind(host, 0)
        what = f"cannot listen there: {error.strerror or error}"
        todo = "try --host 127.0.0.1 and a --port above 1023"
        raise ConfigError(what, where=f"{host}:{port}", todo=todo) from error


def _listen(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except BaseException:
        listener.close()
        raise
    return listener


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches `host`, a name or an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def address(host: str, port: int) -> str:
    """What to open in a browser."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def refuse_other_names(server: Flask) -> None:
    """Answer only requests that call this machine by its own name.

    A page of the web may point a name of its own at 127.0.0.1 and then read whatever listens here.
    """

    def refuse() -> None:
        if not is_loopback(urlsplit(f"//{request.host}").hostname or ""):
            abort(403)

    server.before_request(refuse)


def until_stopped(listener: socket.socket, server: Flask, host: str) -> None:
    """Serve, a thread a request and without a log, until Ctrl-C or SIGTERM."""
    web = make_server(
        host,
        listener.getsockname()[1],
        server,
        threaded=True,
        request_handler=Quiet,
        fd=listener.fileno(),
    )
    with _stopped_by_sigterm():
        web.serve_forever()


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
