"""Listening: a port that is free, a server with so many threads and no more, and a clean stop."""

from __future__ import annotations

import contextlib
import errno
import io
import socket
import sys
from typing import TYPE_CHECKING, Any

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from stepscope.app.ending import end_by_interrupt, end_by_signals
from stepscope.app.web.safety.clients import ADMIT, Clients, Received, Sent
from stepscope.ingest.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

REFUSED = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    b"too many connections of one client: close some, then open the page again\n"
)


class Quiet(WSGIRequestHandler):
    """Answers a request without a line in a log, for a client that takes its time only so far."""

    server: Bounded

    def setup(self) -> None:
        """Have what is read and written bounded in time."""
        self.connection = self.request
        self._bounds = self.server.clients[self.request]
        self.rfile = io.BufferedReader(Received(self._bounds))
        self.wfile = Sent(self._bounds)

    def make_environ(self) -> WSGIEnvironment:
        """Take the head of a request; who has the token is noted by what the environment holds."""
        self._bounds.begin_body()
        return {**super().make_environ(), ADMIT: self._bounds.admit}

    def send_response(self, code: int, message: str | None = None) -> None:
        """Begin the answer."""
        self._bounds.begin_answer()
        super().send_response(code, message)

    def log(self, type: str, message: str, *args: Any) -> None:
        """Say nothing."""


class Bounded(ThreadedWSGIServer):
    """A thread for each connection, for so many at a time in all and of one client."""

    def __init__(
        self, host: str, port: int, server: WSGIApplication, listener: socket.socket
    ) -> None:
        self.clients = Clients()
        super().__init__(host, port, server, Quiet, fd=listener.fileno())

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a connection; where all threads are taken, once one of them is free."""
        if not self.clients.take(request, str(client_address[0])):
            with contextlib.suppress(OSError):
                request.send(REFUSED)
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be started
            self.clients.drop(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer what is asked over a connection until it is closed."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.clients.drop(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that is gone or was closed for another."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


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


def address(host: str, port: int) -> str:
    """What to open in a browser."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def until_stopped(listener: socket.socket, server: WSGIApplication, host: str) -> None:
    """Serve, a thread a request and without a log, until Ctrl-C, SIGTERM or SIGHUP.

    These raise `Ended`; nohup ignores the end of the terminal, and so does this then.
    """
    web = Bounded(host, listener.getsockname()[1], server, listener)
    end_by_signals()
    end_by_interrupt()
    web.serve_forever()
