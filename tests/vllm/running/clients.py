"""Clients of a server's completions, JSON both ways.

`python -m tests.vllm.running.clients PORT < ASKED` runs them.

They are one loop in a process of its own, which the tests cannot hold up. When parts of an answer
came the kernel says (`SO_TIMESTAMPNS`), so that no client is told to have waited for its own CPU.
Of parts that are read together it tells only when the last one came: such a first part is `late`.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import struct
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
SO_TIMESTAMPNS, TIMESPEC = 35, struct.Struct("ll")
ANSWER_S = 300
PRIORITY = 1
"""Of the real-time ones, where we may: above everything that the server runs."""


@dataclass
class Client:
    """One connection: a request, and what came of it."""

    sock: socket.socket
    body: bytes
    told: Row
    leave_after: int | None = None
    rest: bytes = field(default=b"", init=False)

    def send(self) -> None:
        """Send the request; this is when its client begins to wait."""
        self.told["sent"] = time.time_ns()
        self.sock.sendall(self.body)

    def take(self) -> bool:
        """Read what has come; whether there may be more."""
        try:
            data, ancillary, _, _ = self.sock.recvmsg(1 << 16, 256)
        except OSError as error:
            self.told["failed"] = type(error).__name__
            data, ancillary = b"", []
        at_ns = self.told["end"] = _came_ns(ancillary)
        *lines, self.rest = (self.rest + data).split(b"\n")
        if "first" not in self.told and sum(map(_is_part, lines)) > 1:
            self.told["late"] = True
        return bool(data) and all(self._line(line, at_ns) for line in lines)

    def _line(self, line: bytes, at_ns: int) -> bool:
        if line.startswith(b"HTTP/"):
            self.told["status"] = int(line.split()[1])
        if _is_part(line):
            self.told.setdefault("first", at_ns)
            self.told["chunks"] += 1
        if self.told["chunks"] == self.leave_after:
            self.told["left"] = True
        return "left" not in self.told and not line.startswith(b"data: [DONE]")


def ask(port: int, asked: Sequence[Row]) -> list[Row]:
    """Ask for all of it at once, each over a connection of its own; what each client saw."""
    clients = [_connected(port, row) for row in asked]
    until = time.monotonic() + ANSWER_S
    with selectors.DefaultSelector() as ready:
        for client in clients:
            client.send()
            ready.register(client.sock, selectors.EVENT_READ, client)
        while ready.get_map() and time.monotonic() < until:
            for key, _ in ready.select(1.0):
                if not key.data.take():
                    ready.unregister(key.fileobj)
                    key.data.sock.close()
    return [client.told for client in clients]


def _connected(port: int, row: Row) -> Client:
    told: Row = {"id": f"req{row['number']:04}", "chunks": 0}
    more = {name: held for name, held in row.items() if name not in ("number", "leave_after")}
    body = json.dumps({"temperature": 0, "ignore_eos": True, "stream": True, **more}).encode()
    head = (
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"X-Request-Id: {told['id']}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Client(sock, head.encode() + body, told, row.get("leave_after"))


def _is_part(line: bytes) -> bool:
    return line.startswith(b"data: {") and b'"choices":[]' not in line


def _came_ns(ancillary: Sequence[tuple[int, int, bytes]]) -> int:
    for level, kind, told in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
            seconds, nanoseconds = TIMESPEC.unpack(told)
            return int(seconds) * 10**9 + int(nanoseconds)
    return time.time_ns()


if __name__ == "__main__":
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    json.dump(ask(int(sys.argv[1]), json.load(sys.stdin)), sys.stdout)
