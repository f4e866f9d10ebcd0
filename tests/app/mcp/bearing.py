"""A proxy on loopback that sends our token with every request, for a client that has no way to.

It changes nothing else: a Host or an Origin that is its own becomes the server's own, and any other
stays as it came.
"""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PIECE_BYTES = 64 << 10
NAMES = ("127.0.0.1", "localhost")


@contextmanager
def bearing(port: int, token: str) -> Iterator[int]:
    """Stand before the server at a port, and give the proxy's own."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)) as server:
                head, rest = _head(self.request)
                server.sendall(_with_token(head, own, port, token) + rest)
                asked = threading.Thread(target=_copy, args=(self.request, server), daemon=True)
                asked.start()
                _copy(server, self.request)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as proxy:
        proxy.daemon_threads = True
        own = int(proxy.server_address[1])
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield own
        proxy.shutdown()


def _head(client: socket.socket) -> tuple[str, bytes]:
    """The head of a request, and what came with it of what follows."""
    got = b""
    while b"\r\n\r\n" not in got:
        some = client.recv(PIECE_BYTES)
        if not some:
            raise ConnectionError
        got += some
    head, _, rest = got.partition(b"\r\n\r\n")
    return head.decode("latin-1"), rest


def _with_token(head: str, own: int, port: int, token: str) -> bytes:
    first, *lines = head.split("\r\n")
    kept = [line for line in lines if not line.lower().startswith("connection:")]
    for name in NAMES:
        kept = [
            line.replace(f"{name}:{own}", f"{name}:{port}")
            if line.lower().startswith(("host:", "origin:")) else line
            for line in kept
        ]  # fmt: skip
    kept += [f"Authorization: Bearer {token}", "Connection: close"]
    return "\r\n".join([first, *kept, "", ""]).encode("latin-1")


def _copy(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while some := one.recv(PIECE_BYTES):
            other.sendall(some)
