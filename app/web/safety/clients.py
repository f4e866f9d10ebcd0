"""How much a client may hold of the server: connections, and the time that it keeps them waiting.

On loopback every user of the machine has one address, so a limit for an address alone would let a
stranger shut out the owner. Where connections are short, the one whose client has kept us waiting
longest is closed for the new one, and never one that has shown the token.
"""

from __future__ import annotations

import contextlib
import io
import ipaddress
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

MOST_AT_ONCE = 128
"""Connections that have a thread."""
MOST_OF_ONE = 64
"""Connections of one client: an IPv4 address, an IPv6 network of 64 bits, or this machine."""
GRACE_S = 0.2
"""A client that has kept us waiting for less is not closed for a new one."""
HEAD_S = 10.0
"""The time that a client may take for the head of a request, from its first byte to its last."""
BODY_S = 30.0
"""The same for the body, and more for a large one: see SLOWEST."""
ANSWER_S = 120.0
"""The same for taking the answer."""
SLOWEST = 256 * 1024
"""Bytes per second at which a body may be sent and an answer taken, for however long."""
REST_S = 30.0
"""How long what is still sent is read after an answer, so that the client sees it."""
REST_OF_STRANGER_S = 1.0
"""The same for a client without the token."""
LONGEST_S = 3_600.0
"""A client that sends and takes nothing at all for that long is closed in any case."""
ADMIT = "stepscope.admit"
"""The key in a WSGI environment of the function to call for a client that has the token."""


@dataclass(eq=False)
class Connection:
    """A connection, the request on it, and how long its client has kept us waiting."""

    socket: socket.socket
    client: str
    changed: threading.Condition
    is_admitted: bool = False
    is_waiting: bool = False
    is_evicted: bool = False
    since: float = field(default_factory=time.monotonic)
    _allowed_s: float = field(default_factory=lambda: HEAD_S)
    _spent_s: float = 0.0  # waiting for the client; what the answer costs us is not its time
    _slowest: int = 0
    _num_bytes: int = 0
    _rest_until: float = 0.0

    def admit(self) -> None:
        """Note that the client has the token."""
        self.is_admitted = True

    def begin_body(self) -> None:
        """The head is there: from now on the client has the time for a body."""
        self._begin(BODY_S)

    def begin_answer(self) -> None:
        """The answer is sent from now on."""
        self._begin(ANSWER_S)
        rest_s = REST_S if self.is_admitted else REST_OF_STRANGER_S
        self._rest_until = time.monotonic() + rest_s

    def _begin(self, allowed_s: float) -> None:
        self.since = time.monotonic()
        self._allowed_s, self._slowest = allowed_s, SLOWEST
        self._spent_s, self._num_bytes = 0.0, 0

    def receive(self, buffer: memoryview) -> int:
        """Read into a buffer; the number of bytes, 0 at the end. TimeoutError for a slow client.

        After an answer, a client that is slow or gone is the end: an error would keep werkzeug from
        closing what the answer was read from.
        """
        try:
            return self._receive(buffer)
        except OSError:
            if not self._rest_until:
                raise
            return 0

    def _receive(self, buffer: memoryview) -> int:
        while True:
            left_s = self._left_to_send_s()
            if self._slowest and left_s < 0:
                raise TimeoutError("the client sends for too long")
            try:
                num_bytes = self.socket.recv_into(buffer)
            except BlockingIOError:
                self._wait(selectors.EVENT_READ, left_s)
                continue
            self._num_bytes += num_bytes
            return num_bytes

    def send(self, data: memoryview) -> None:
        """Send all of it. TimeoutError for a slow client."""
        while data:
            try:
                num_bytes = self.socket.send(data)
            except BlockingIOError:
                self._wait(selectors.EVENT_WRITE, self._allowed() - self._spent_s)
                continue
            self._num_bytes += num_bytes
            data = data[num_bytes:]

    def _allowed(self) -> float:
        return self._allowed_s + (self._num_bytes / self._slowest if self._slowest else 0.0)

    def _left_to_send_s(self) -> float:
        now = time.monotonic()
        return self._rest_until - now if self._rest_until else self.since + self._allowed() - now

    def _wait(self, event: int, left_s: float) -> None:
        if left_s <= 0:
            raise TimeoutError("the client is too slow")
        begun = time.monotonic()
        with self.changed:
            self.is_waiting = True
            self.changed.notify_all()
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self.socket, event)
                is_ready = bool(selector.select(min(left_s, LONGEST_S)))
        finally:
            with self.changed:
                self.is_waiting = False
            self._spent_s += time.monotonic() - begun
        if self.is_evicted:
            raise ConnectionAbortedError("closed for another client")
        if not is_ready:
            raise TimeoutError("the client is too slow")

    def evict(self) -> None:
        """End it; the thread that waits for its client is woken."""
        self.is_evicted = True
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


class Received(io.RawIOBase):
    """What the client sends, as a file."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read what has come, and wait where nothing has."""
        return self._connection.receive(memoryview(buffer))


class Sent(io.BufferedIOBase):
    """What is sent to the client, as a file; nothing waits in it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def writable(self) -> bool:
        """It can be written."""
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        """Send all of it."""
        with memoryview(data) as view:
            self._connection.send(view.cast("B"))
            return view.nbytes


class Clients:
    """The connections that have a thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._connections: dict[socket.socket, Connection] = {}

    def __getitem__(self, request: socket.socket) -> Connection:
        """The connection over this socket; one that was closed for another is there no more."""
        with self._changed:
            found = self._connections.get(request)
        if found is None:
            raise ConnectionAbortedError("closed for another client")
        return found

    def take(self, request: socket.socket, host: str) -> bool:
        """Take a connection, if need be for another; False where its client has too many.

        Where all are being answered, it waits until one of them ends.
        """
        request.setblocking(False)
        client = client_of(host)
        with self._changed:
            while True:
                own = [one for one in self._connections.values() if one.client == client]
                has_many = len(own) >= MOST_OF_ONE
                if not has_many and len(self._connections) < MOST_AT_ONCE:
                    break
                slow = _slowest_of(own if has_many else self._connections.values())
                if slow is not None:
                    left_s = slow.since + GRACE_S - time.monotonic()
                    if left_s > 0:
                        self._changed.wait(left_s)
                        continue
                    del self._connections[slow.socket]
                    slow.evict()
                elif has_many:
                    return False
                else:
                    self._changed.wait()
            self._connections[request] = Connection(request, client, self._changed)
        return True

    def drop(self, request: socket.socket) -> None:
        """The connection has ended."""
        with self._changed:
            self._connections.pop(request, None)
            self._changed.notify_all()


def _slowest_of(connections: Iterable[Connection]) -> Connection | None:
    """The one without the token whose client keeps us waiting, and has begun first."""
    began: Callable[[Connection], float] = lambda one: one.since  # noqa: E731 - a key
    waiting = (one for one in connections if one.is_waiting and not one.is_admitted)
    return min(waiting, key=began, default=None)


def client_of(host: str) -> str:
    """Whose connection it is: what one client may choose of an address is left out."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is None:
            network = ipaddress.ip_network((address, 64), strict=False)
            return "this machine" if address.is_loopback else str(network)
        address = address.ipv4_mapped
    return "this machine" if address.is_loopback else str(address)
