"""An exchange of HTTP with a client: when it was read, and when parts of the answer were written.

Between the client and the front end proper lie the server's event loop and its layers, in which a
burst waits, too. A layer of ASGI around all others tells the two ends; what the front end does
for the client in between finds its exchange by the context that it runs in.

Before the layer is called a request lies in its socket until the event loop comes round to it. How
long ago it came the kernel knows, in ticks of its own clock (1 to 10 ms): `TCP_INFO`, linux/tcp.h.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

LAST_DATA = struct.Struct("52xI")
"""Of a `tcp_info` its `tcpi_last_data_recv`: how long ago the last data came, in ms."""
COARSE = 6
"""Linux's CLOCK_MONOTONIC_COARSE, which Python has no name for."""

EXCHANGE: ContextVar[Exchange | None] = ContextVar("stepscope_exchange", default=None)
"""The exchange that the running code belongs to."""


@dataclass(eq=False, slots=True)
class Exchange:
    """One exchange; `on_sent` is told of the first part that was written, and of the last."""

    began_ns: int
    requests: list[str] = field(default_factory=list)
    on_sent: Callable[[int, bool], None] | None = None
    first_ns: int | None = None
    last_ns: int | None = None

    def sent(self, now_ns: int) -> None:
        """A part of the answer was written."""
        self.last_ns = now_ns
        if self.first_ns is None:
            self.first_ns = now_ns
            if self.on_sent is not None:
                self.on_sent(now_ns, False)

    def ended(self) -> None:
        """The answer is whole."""
        if self.on_sent is not None and self.last_ns is not None:
            self.on_sent(self.last_ns, True)


class Exchanges:
    """The layer: pass it to `add_middleware` of an application."""

    def __init__(self, app: App, now_ns: Callable[[], int] = time.time_ns) -> None:
        self.app = app
        self._now_ns = now_ns

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass an exchange on, and note when parts of its answer were written."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = Exchange(self._now_ns() - waited_ns(receive))
        EXCHANGE.set(exchange)

        async def send_and_note(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.body" and message.get("body"):
                exchange.sent(self._now_ns())

        await self.app(scope, receive, send_and_note)
        exchange.ended()


def waited_ns(receive: Any) -> int:
    """How long the request that `receive` gives had been there before it was read.

    0 where the server's transport does not tell, or where it is no more than a tick of the kernel.
    """
    if sys.platform != "linux":
        return 0
    try:
        sock = receive.__self__.transport.get_extra_info("socket")  # as uvicorn has it
        told = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, LAST_DATA.size)
        (waited_ms,) = LAST_DATA.unpack(told)
    except (AttributeError, OSError, struct.error):
        return 0
    return int(waited_ms) * 10**6 if waited_ms > tick_ms() else 0


def tick_ms() -> float:
    """How long a tick of the kernel's clock is: by those it counts what `TCP_INFO` tells."""
    return time.clock_getres(COARSE) * 1e3
