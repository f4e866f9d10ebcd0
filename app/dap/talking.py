"""Talking to one client, over two streams or over a port of this machine."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import BinaryIO

from stepscope.app.dap.adapter import Adapter
from stepscope.app.dap.framing import read_message, write_message
from stepscope.ingest.errors import ConfigError

LOOPBACK = "127.0.0.1"


def talk(adapter: Adapter, source: BinaryIO, out: BinaryIO) -> None:
    """Answer messages until the client goes; raises ConfigError for what is none."""
    try:
        while not adapter.has_ended and (message := read_message(source)) is not None:
            for answer in adapter.answer(message):
                write_message(out, answer)
    except ConnectionError:
        return  # who went away wants no answer


def talk_at_port(adapter: Adapter, port: int, say: Callable[[str], None]) -> None:
    """Wait for one client at a port of this machine, and `say` at which; 0 takes a free one.

    The protocol has no token, and other users of the machine can reach the port: their clients are
    disconnected if the system says who owns a connection (Linux). Raises ConfigError if the port is
    taken, and for invalid messages.
    """
    try:
        server = socket.create_server((LOOPBACK, port))
    except OSError as error:
        todo = "take another, or 0 for a free one"
        raise ConfigError(f"port {port} cannot be had: {error.strerror}", todo=todo) from None
    with closing(server):
        say(f"listening on {LOOPBACK}:{server.getsockname()[1]}")
        client, _ = server.accept()
        while user_of(client) not in {None, 0, os.getuid() if hasattr(os, "getuid") else None}:
            client.close()
            say("disconnected a client of another user")
            client, _ = server.accept()
    with client, client.makefile("rb") as source, client.makefile("wb") as out:
        talk(adapter, source, out)


def user_of(client: socket.socket) -> int | None:
    """Return the user id of a loopback client, from the kernel's list; None if unknown."""
    address, port = client.getpeername()[:2]
    number = int.from_bytes(socket.inet_aton(address), sys.byteorder)
    other_end = f"{number:08X}:{port:04X}"
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]:
            fields = line.split()
            if fields[1] == other_end:
                return int(fields[7])
    return None
