"""Clients that are many, slow or gone do no harm to others."""

from __future__ import annotations

import http.client
import json
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from flask import Flask

from stepscope.app.web import listen
from stepscope.ingest.storage.saving import save_trace
from tests.app.web.small_traces import conflict_trace

PATIENCE_S = 180
"""A machine may be busy with other things; nothing here waits this long."""
WISH = {"t0": 0, "t1": 600_000, "width": 800, "lanes": [0, 1, 2, 3], "hide": []}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """The page of a small trace in a process of its own, which says nothing until its end."""
    save_trace(conflict_trace(), tmp_path / "small.trace")
    command = [
        sys.executable,
        "-m",
        "stepscope.app",
        "web",
        str(tmp_path / "small.trace"),
        "--port=0",
    ]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout
        url = urlsplit(process.stdout.readline().split()[2])
        yield str(url.hostname), int(url.port or 0)
        process.terminate()
        assert process.communicate(timeout=PATIENCE_S) == ("", "")


def painted(server: tuple[str, int]) -> int:
    """Ask for a picture; how many lanes are in it."""
    with closing(http.client.HTTPConnection(*server, timeout=PATIENCE_S)) as connection:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/picture", json.dumps(WISH), headers)
        line, _, _ = connection.getresponse().read().partition(b"\n")
    return len(json.loads(line)["lanes"])


def begun(server: tuple[str, int]) -> socket.socket:
    """A client that begins to ask and says no more."""
    connection = socket.create_connection(server, timeout=PATIENCE_S)
    connection.sendall(b"POST /picture HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    return connection


def killed(server: tuple[str, int]) -> None:
    """A client that asks for much and is gone before the answer."""
    connection = socket.create_connection(server, timeout=PATIENCE_S)
    connection.sendall(b"GET /_dash-component-suites/plotly/package_data/plotly.min.js HTTP/1.1\r\n"
                       b"Host: 127.0.0.1\r\n\r\n")  # fmt: skip
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_fifty_clients_at_once_are_all_answered(served: tuple[str, int]) -> None:
    with ThreadPoolExecutor(50) as clients:
        answers = list(clients.map(painted, [served] * 200))

    assert answers == [4] * 200


def test_clients_that_are_gone_or_never_end_keep_nobody_waiting(served: tuple[str, int]) -> None:
    for _ in range(50):
        killed(served)
    silent = [begun(served) for _ in range(50)]
    try:
        assert painted(served) == 4
    finally:
        for each in silent:
            each.close()
    assert painted(served) == 4


def test_a_connection_that_is_silent_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listen.Quiet, "timeout", 0.1)
    with listen.bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        server = listen.Bounded("127.0.0.1", port, Flask("silent"), listener)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with begun(("127.0.0.1", port)) as silent:
                assert silent.recv(1) == b""
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def test_no_more_than_so_many_are_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listen, "MOST_AT_ONCE", 2)
    app = Flask("crowded")
    seen: list[int] = []
    inside = threading.Semaphore(0)
    lock, entered = threading.Lock(), threading.Event()

    @app.get("/")
    def wait() -> str:
        with lock:
            seen.append(1)
            if len(seen) == listen.MOST_AT_ONCE:
                entered.set()
        inside.acquire()
        return "done"

    with listen.bind("127.0.0.1", 0) as listener:
        address = ("127.0.0.1", listener.getsockname()[1])
        server = listen.Bounded(*address, app, listener)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with ThreadPoolExecutor(6) as clients:
            asked = [clients.submit(status, address) for _ in range(6)]
            assert entered.wait(PATIENCE_S)
            most = len(seen)
            inside.release(6)
            answers = [each.result() for each in asked]
        server.shutdown()
        thread.join()
        server.server_close()

    assert most == 2
    assert answers == [200] * 6


def status(server: tuple[str, int]) -> int:
    """Ask for nothing much, over a connection that is closed then."""
    with closing(http.client.HTTPConnection(*server, timeout=PATIENCE_S)) as connection:
        connection.request("GET", "/", headers={"Connection": "close"})
        return connection.getresponse().status
