"""Exchanges of HTTP: when a request had come, of which the server learns only when it reads it."""

from __future__ import annotations

import asyncio
import select
import socket
import sys
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.ingest.attach.vllm.exchange import EXCHANGE, LAST_DATA, Exchanges, tick_ms, waited_ns

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when data came")
NOW_NS = 1_800_000_000 * 10**9


class Cycle:
    """As uvicorn's: what its `receive` is bound to has the transport."""

    def __init__(self, sock: Any) -> None:
        self.transport = SimpleNamespace(get_extra_info={"socket": sock}.get)

    async def receive(self) -> Any: ...

    async def send(self, message: Any) -> None: ...


def last_data_came(ms_ago: int) -> Any:
    """A socket that says how long ago its last data came."""
    return SimpleNamespace(getsockopt=lambda *_: LAST_DATA.pack(ms_ago))


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection: the client's end of it, and the server's."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
    with client, accepted:
        yield client, accepted


@ON_LINUX
def test_a_request_waits_from_when_the_kernel_had_it(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    client, accepted = ends
    before = time.monotonic_ns()
    client.sendall(b"POST")
    select.select([accepted], [], [])
    had = time.monotonic_ns()
    time.sleep(0.2)
    accepted.recv(9)

    slept, waited = time.monotonic_ns() - had, waited_ns(Cycle(accepted).receive)

    tick = tick_ms() * 10**6  # the kernel counts in ticks
    assert slept - 2 * tick <= waited <= time.monotonic_ns() - before + 2 * tick


@ON_LINUX
def test_a_wait_of_no_more_than_a_tick_of_the_kernel_is_none() -> None:
    tick = int(tick_ms())

    assert waited_ns(Cycle(last_data_came(tick)).receive) == 0
    assert waited_ns(Cycle(last_data_came(tick + 1)).receive) == (tick + 1) * 10**6


@pytest.mark.parametrize("sock", [None, SimpleNamespace(getsockopt=lambda *_: b"short")])
def test_a_server_that_does_not_tell_of_its_socket_makes_no_wait(sock: Any) -> None:
    assert waited_ns(Cycle(sock).receive) == 0
    assert waited_ns(asyncio.sleep) == 0


@ON_LINUX
def test_an_exchange_begins_when_its_request_came() -> None:
    began: list[int] = []

    async def app(*_: Any) -> None:
        exchange = EXCHANGE.get()
        assert exchange is not None
        began.append(exchange.began_ns)

    layer = Exchanges(app, now_ns=lambda: NOW_NS)
    asyncio.run(layer({"type": "http"}, Cycle(last_data_came(80)).receive, Cycle(None).send))

    assert began == [NOW_NS - 80 * 10**6]
