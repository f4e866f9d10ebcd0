"""Talking to one client, over two streams or over a port of this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing
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

    Raises ConfigError where the port is taken, and for what is no message.
    """
    try:
        server = socket.create_server((LOOPBACK, port))
    except OSError as error:
        todo = "take another, or 0 for a free one"
        raise ConfigError(f"port {port} cannot be had: {error.strerror}", todo=todo) from None
    with closing(server):
        say(f"listening on {LOOPBACK}:{server.getsockname()[1]}")
        client, _ = server.accept()
    with client, client.makefile("rb") as source, client.makefile("wb") as out:
        talk(adapter, source, out)
