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
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from flask import Flask, Response, request

from stepscope.app.web import listen
from stepscope.app.web.safety import clients
from stepscope.app.web.safety.access import Access, guard
from stepscope.ingest.storage.saving import save_trace
from tests.app.web.small_traces import conflict_trace

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

PATIENCE_S = 180
"""A machine may be busy with other things; nothing here waits this long."""
WISH = {"t0": 0, "t1": 600_000, "width": 800, "lanes": [0, 1, 2, 3], "hide": []}


Server = tuple[str, int]


@dataclass(frozen=True)
class Served:
    """Where the page of a small trace is, and the cookie of who has opened the printed address."""

    server: Server
    cookie: str


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
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
        server = str(url.hostname), int(url.port or 0)
        with closing(http.client.HTTPConnection(*server, timeout=PATIENCE_S)) as connection:
            connection.request("GET", f"/?{url.query}")
            cookie = str(connection.getresponse().headers["Set-Cookie"]).partition(";")[0]
        yield Served(server, cookie)
        process.terminate()
        assert process.communicate(timeout=PATIENCE_S) == ("", "stepscope: ended by SIGTERM\n")


@contextmanager
def serving(app: WSGIApplication) -> Iterator[Server]:
    """Serve an application in this process; where it is."""
    with listen.bind("127.0.0.1", 0) as listener:
        address = ("127.0.0.1", listener.getsockname()[1])
        server = listen.Bounded(*address, app, listener)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield address
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def painted(served: Served) -> int:
    """Ask for a picture; how many lanes are in it."""
    with closing(http.client.HTTPConnection(*served.server, timeout=PATIENCE_S)) as connection:
        headers = {"Content-Type": "application/json", "Cookie": served.cookie}
        connection.request("POST", "/picture", json.dumps(WISH), headers)
        line, _, _ = connection.getresponse().read().partition(b"\n")
    return len(json.loads(line)["lanes"])


def begun(server: Server, head: bytes = b"") -> socket.socket:
    """A client that begins to ask and says no more."""
    connection = socket.create_connection(server, timeout=PATIENCE_S)
    connection.sendall(head or b"POST /picture HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    return connection


def dribbled(slow: list[socket.socket], data: bytes = b"x") -> int:
    """Send a few bytes more over every connection; how many are closed."""
    num_closed = 0
    for connection in slow:
        try:
            connection.sendall(data)
        except OSError:
            num_closed += 1
    return num_closed


def killed(served: Served) -> None:
    """A client that asks for much and is gone before the answer."""
    connection = socket.create_connection(served.server, timeout=PATIENCE_S)
    path = "/_dash-component-suites/plotly/package_data/plotly.min.js"
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{served.server[1]}\r\nCookie: {served.cookie}"
    connection.sendall(f"{head}\r\n\r\n".encode())
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_fifty_clients_at_once_are_all_answered(served: Served) -> None:
    with ThreadPoolExecutor(50) as clients:
        answers = list(clients.map(painted, [served] * 200))

    assert answers == [4] * 200


def test_clients_that_are_gone_or_never_end_keep_nobody_waiting(served: Served) -> None:
    for _ in range(50):
        killed(served)
    silent = [begun(served.server) for _ in range(50)]
    try:
        assert painted(served) == 4
    finally:
        for each in silent:
            each.close()
    assert painted(served) == 4


def test_an_owner_goes_on_while_two_hundred_slow_connections_are_open(served: Served) -> None:
    slow = [begun(served.server) for _ in range(200)]
    try:
        for _ in range(5):
            dribbled(slow)
            assert painted(served) == 4
        silent = [socket.create_connection(served.server) for _ in range(200)]
        slow += silent
        assert painted(served) == 4
    finally:
        for connection in slow:
            connection.close()


def test_a_client_that_sends_a_head_byte_by_byte_is_closed_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clients, "HEAD_S", 0.1)
    with serving(Flask("slow")) as server, begun(server) as slow:
        while not dribbled([slow]):
            pass
        with begun(server) as silent:
            assert silent.recv(1) == b""


def test_a_client_that_sends_a_body_byte_by_byte_is_closed_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clients, "BODY_S", 0.1)
    monkeypatch.setattr(clients, "REST_OF_STRANGER_S", 0.1)
    monkeypatch.setattr(clients, "SLOWEST", 1 << 40)  # this client is as fast as the machine
    app = Flask("slow")
    app.add_url_rule("/", view_func=lambda: bytes(request.get_data()), methods=["POST"])
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n"
    with serving(app) as server, begun(server, head) as slow:
        while not dribbled([slow]):
            pass


def test_a_stranger_who_goes_on_sending_after_the_refusal_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clients, "REST_OF_STRANGER_S", 0.1)
    app = Flask("guarded")
    guard(app, Access.to("127.0.0.1"))
    head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000000\r\n\r\n"
    with serving(app) as server, begun(server, head) as slow:
        assert slow.recv(1024).startswith(b"HTTP/1.1 403")
        while not dribbled([slow]):
            pass


def test_a_client_that_does_not_take_its_answer_is_closed_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clients, "ANSWER_S", 0.1)
    monkeypatch.setattr(clients, "SLOWEST", 1 << 40)
    num_bytes = 64 << 20
    app = Flask("large")
    ended = threading.Event()

    def large() -> Response:
        answer = Response(bytes(num_bytes))
        answer.call_on_close(ended.set)
        return answer

    app.add_url_rule("/", view_func=large)
    with serving(app) as server, begun(server, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n") as slow:
        assert ended.wait(PATIENCE_S)
        received = 0
        with suppress(ConnectionError):
            while data := slow.recv(1 << 20):
                received += len(data)
    assert received < num_bytes


def test_the_file_of_an_answer_is_closed_when_the_client_is_gone() -> None:
    """What Flask reads a file with is closed by `close` of the answer, and by nothing else."""
    is_sent, is_gone, is_closed = (threading.Event() for _ in range(3))

    class Answer:
        def __iter__(self) -> Iterator[bytes]:
            yield b"all of it"
            is_sent.set()
            is_gone.wait(PATIENCE_S)

        def close(self) -> None:
            is_closed.set()

    def app(_environ: WSGIEnvironment, start_response: StartResponse) -> Answer:
        start_response("200 OK", [("Content-Length", "9")])
        return Answer()

    with serving(app) as server:
        with closing(socket.create_connection(server)) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert is_sent.wait(PATIENCE_S)
            reset = struct.pack("ii", 1, 0)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        is_gone.set()

        assert is_closed.wait(PATIENCE_S)


def test_a_large_body_that_comes_fast_enough_has_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    near, far = socket.socketpair()
    near.setblocking(False)
    with near, far:
        connection = clients.Connection(near, "x", threading.Condition())
        monkeypatch.setattr(clients, "BODY_S", 1e-3)
        monkeypatch.setattr(clients, "SLOWEST", 1 << 40)
        connection.begin_body()
        with pytest.raises(TimeoutError):
            connection.receive(memoryview(bytearray(9)))
        monkeypatch.setattr(clients, "BODY_S", PATIENCE_S)
        monkeypatch.setattr(clients, "SLOWEST", 1e-9)
        connection.begin_body()
        far.sendall(b"x")
        assert connection.receive(memoryview(bytearray(9))) == 1
        connection.since -= 2 * PATIENCE_S
        later = threading.Timer(0.01, far.sendall, (b"y",))
        later.start()
        assert connection.receive(memoryview(bytearray(9))) == 1
        later.join()


def test_who_has_the_token_is_never_closed_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "MOST_AT_ONCE", 2)
    monkeypatch.setattr(clients, "GRACE_S", 0.0)
    app = Flask("guarded")
    entered = threading.Event()

    def body() -> bytes:
        entered.set()
        return request.get_data()

    app.add_url_rule("/", view_func=body, methods=["POST"])
    access = Access.to("127.0.0.1")
    guard(app, access)
    with serving(app) as server, ExitStack() as strangers:
        cookie = f"Cookie: stepscope-{server[1]}={access._session}\r\n".encode()
        host = f"Host: 127.0.0.1:{server[1]}\r\n".encode()
        head = b"POST / HTTP/1.1\r\nContent-Length: 4\r\n" + cookie + host + b"\r\n"
        with begun(server, head) as owner:
            assert entered.wait(PATIENCE_S)
            slow = [strangers.enter_context(begun(server)) for _ in range(20)]
            assert slow[0].recv(1) == b""  # closed for the others
            owner.sendall(b"body")
            assert owner.makefile("rb").read().endswith(b"body")


def test_a_client_with_too_many_connections_is_refused_and_no_other_client_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clients, "MOST_OF_ONE", 1)
    taken = clients.Clients()
    pairs = [socket.socketpair() for _ in range(3)]
    hosts = ("10.0.0.1", "10.0.0.1", "10.0.0.2")

    assert [taken.take(near, host) for (near, _), host in zip(pairs, hosts, strict=True)] == [
        True, False, True,
    ]  # fmt: skip
    for near, far in pairs:
        near.close()
        far.close()


def test_addresses_among_which_a_client_may_choose_are_one_client() -> None:
    same = (
        ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"),
        ("10.0.0.1", "::ffff:10.0.0.1"),
        ("2001:db8::1", "2001:db8::ffff:1", "2001:db8::2%eth0"),
        ("2001:db8:0:1::1",),
    )

    found = [{clients.client_of(host) for host in hosts} for hosts in same]

    assert [len(names) for names in found] == [1] * len(same)
    assert len(set.union(*found)) == len(same)


def test_no_more_than_so_many_are_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "MOST_AT_ONCE", 2)
    monkeypatch.setattr(clients, "GRACE_S", PATIENCE_S)
    app = Flask("crowded")
    seen: list[int] = []
    inside = threading.Semaphore(0)
    lock, entered = threading.Lock(), threading.Event()

    @app.get("/")
    def wait() -> str:
        with lock:
            seen.append(1)
            if len(seen) == clients.MOST_AT_ONCE:
                entered.set()
        inside.acquire()
        return "done"

    with serving(app) as address, ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(status, address) for _ in range(6)]
        assert entered.wait(PATIENCE_S)
        most = len(seen)
        inside.release(6)
        answers = [each.result() for each in asked]

    assert most == 2
    assert answers == [200] * 6


def status(server: Server) -> int:
    """Ask for nothing much, over a connection that is closed then."""
    with closing(http.client.HTTPConnection(*server, timeout=PATIENCE_S)) as connection:
        connection.request("GET", "/", headers={"Connection": "close"})
        return connection.getresponse().status
