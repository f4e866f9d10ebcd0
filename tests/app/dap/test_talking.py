"""A port of the debug adapter serves the user who started it, and no other user of the machine."""

from __future__ import annotations

import os
import socket
import sys
import threading
from queue import Queue

import pytest

from stepscope.app.cli.opening import OpenTrace
from stepscope.app.dap import talking
from stepscope.app.dap.adapter import Adapter
from stepscope.app.dap.talking import LOOPBACK, talk_at_port, user_of

PATIENCE_S = 180


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists whose a connection is")
def test_the_kernel_tells_who_connected() -> None:
    with (
        socket.create_server((LOOPBACK, 0)) as server,
        socket.create_connection(server.getsockname()),
        server.accept()[0] as client,
    ):
        assert user_of(client) == os.getuid()


def test_a_client_of_another_user_is_hung_up_on_and_the_next_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    users = iter([os.getuid() + 1, os.getuid()])
    monkeypatch.setattr(talking, "user_of", lambda _: next(users))
    said: Queue[str] = Queue()
    serving = threading.Thread(
        target=talk_at_port, args=(Adapter(OpenTrace()), 0, said.put), daemon=True
    )
    serving.start()
    port = int(said.get(timeout=PATIENCE_S).rpartition(":")[2])

    with socket.create_connection((LOOPBACK, port), timeout=PATIENCE_S) as stranger:
        assert stranger.recv(1) == b""
    assert said.get(timeout=PATIENCE_S) == "disconnected a client of another user"
    socket.create_connection((LOOPBACK, port), timeout=PATIENCE_S).close()
    serving.join(PATIENCE_S)
    assert not serving.is_alive()
