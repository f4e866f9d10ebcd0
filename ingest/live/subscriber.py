"""What engines publish over ZMQ while they run, captured as it comes: forward passes, KV events.

An engine binds a socket and publishes; whoever listens connects to it and sends nothing. Each
message is put behind the last one in a file, with the time at which it came, so that the readers of
captures read it. What is lost on the way is counted by them, by the numbers that publishers give.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import FileIO
from ipaddress import ip_address
from types import ModuleType
from typing import Any

import msgspec

from stepscope.ingest.errors import ConfigError, MissingExtra
from stepscope.ingest.limits import DEFAULTS, Limits, raised_by

POLL_MS = 100
QUEUED = 100_000
"""Messages that may wait for us before a publisher lets new ones fall."""
MOST_TIMES = 64
"""A message of so many times the limit is received, counted and left out."""
LOCAL = "only this machine is listened to unless --remote says otherwise"
STOPPED = "it was stopped"
_FORMS = "an address is tcp://HOST:PORT, or ipc://PATH"


@dataclass(frozen=True, slots=True)
class Patience:
    """After how many seconds it ends: in all, without a message, and without any at first."""

    seconds: float | None = None
    idle: float | None = None
    first: float = 30.0


@dataclass(slots=True)
class Heard:
    """How much was captured, what was left out, and why it ended."""

    num_messages: int = 0
    num_bytes: int = 0
    num_malformed: int = 0
    num_too_large: int = 0
    ended: str = ""


def check_addresses(addresses: Sequence[str], *, remote: bool = False) -> None:
    """Raise ConfigError for what is not an address, or is of another machine unless `remote`."""
    for address in addresses:
        scheme, found, rest = address.partition("://")
        if scheme == "ipc" and found and rest:
            continue
        host, _, port = rest.rpartition(":")
        if scheme != "tcp" or not host or not port.isascii() or not port.isdigit():
            raise ConfigError("it is not an address to listen at", where=address, todo=_FORMS)
        if not 0 < int(port) < 1 << 16:
            raise ConfigError(f"there is no port {port[:20]}", where=address, todo="1 to 65535")
        if not remote and not _is_loopback(host):
            raise ConfigError("this is another machine", where=address, todo=LOCAL)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def listen(
    addresses: Sequence[str],
    captures: Callable[[bytes], FileIO],
    patience: Patience,
    is_stopped: Callable[[], bool] = lambda: False,
    limits: Limits = DEFAULTS,
    clock: Callable[[], float] = time.monotonic,
) -> Heard:
    """Capture messages until the publishers are gone, patience ends or somebody stops it.

    `captures` gives the file that a message belongs into, `clock` the seconds. Raises MissingExtra
    where there is no pyzmq, ConfigError where an address cannot be connected to.
    """
    zmq = _zmq()
    heard = Heard()
    with _subscribed(zmq, addresses, limits) as (socket, monitor):
        watch = _Watch(zmq, monitor, patience, clock, clock())
        while not heard.ended:
            failed = ""
            if socket.poll(POLL_MS):
                failed = _take(socket.recv_multipart(), heard, captures, limits)
                failed = failed or _beyond(heard, limits)
                watch.heard()
            heard.ended = failed or (STOPPED if is_stopped() else watch.ended())
        if not failed:
            _drain(zmq, socket, heard, captures, limits)
    return heard


def _zmq() -> ModuleType:
    try:
        import zmq  # noqa: PLC0415 - few listen, and it is an extra
    except ImportError as missing:
        todo = "pip install 'stepscope[live]'"
        raise MissingExtra("listening needs pyzmq", todo=todo) from missing
    return zmq


@contextmanager
def _subscribed(zmq: Any, addresses: Sequence[str], limits: Limits) -> Iterator[tuple[Any, Any]]:
    """A socket that is subscribed to all of them, and one that tells of connections."""
    with ExitStack() as stack:
        context = stack.enter_context(zmq.Context())
        socket = stack.enter_context(context.socket(zmq.SUB))
        socket.linger = 0
        socket.set(zmq.RCVHWM, QUEUED)
        # ZMQ drops the connection at a larger one, which looks as if the publisher had ended.
        socket.set(zmq.MAXMSGSIZE, MOST_TIMES * limits.message)
        socket.set(zmq.IPV6, 1)
        socket.subscribe(b"")
        events = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED
        monitor = stack.enter_context(socket.get_monitor_socket(events))
        stack.callback(socket.disable_monitor)
        for address in addresses:
            try:
                socket.connect(address)
            except zmq.ZMQError as error:
                raise ConfigError(f"cannot be connected to: {error}", where=address) from None
        yield socket, monitor


@dataclass(slots=True)
class _Watch:
    """Who is connected, and how long nothing has come."""

    zmq: Any
    monitor: Any
    patience: Patience
    clock: Callable[[], float]
    began: float
    last: float | None = None
    num_connected: int = 0
    was_connected: bool = False

    def heard(self) -> None:
        self.last = self.clock()

    def ended(self) -> str:
        """Why there is no point in waiting any longer; empty while there is."""
        self._count()
        now = self.clock()
        if self.patience.seconds is not None and now - self.began > self.patience.seconds:
            return "the time was over"
        if self.was_connected and not self.num_connected:
            return "the publisher is gone"
        if self.last is None:
            is_over = now - self.began > self.patience.first
            return "the wait for the first one was over" if is_over else ""
        is_idle = self.patience.idle is not None and now - self.last > self.patience.idle
        return "nothing came any more" if is_idle else ""

    def _count(self) -> None:
        from zmq.utils.monitor import recv_monitor_message  # noqa: PLC0415 - as zmq itself

        while self.monitor.poll(0):
            is_on = recv_monitor_message(self.monitor)["event"] != self.zmq.EVENT_DISCONNECTED
            self.num_connected += 1 if is_on else -1
            self.was_connected = self.was_connected or is_on


def _take(
    frames: list[bytes], heard: Heard, captures: Callable[[bytes], FileIO], limits: Limits
) -> str:
    """Put a message of one to three frames behind the last one; gives why it could not be."""
    if len(frames) > 3:
        heard.num_malformed += 1
        return ""
    if sum(map(len, frames)) > limits.message:
        heard.num_too_large += 1
        return ""
    *head, payload = frames
    topic, seq = [*head, None, None][:2]
    message = msgspec.msgpack.encode([topic or b"", seq, payload, time.time_ns()])
    try:
        _write(captures(payload), memoryview(message))
    except OSError as error:
        return f"the next could not be written: {error.strerror}"
    heard.num_messages += 1
    heard.num_bytes += len(message)
    return ""


def _write(file: FileIO, left: memoryview) -> None:
    """Write all of it: one call may write a part."""
    while left:
        left = left[file.write(left) :]


def _beyond(heard: Heard, limits: Limits) -> str:
    if heard.num_messages >= limits.events:
        return f"{limits.events:,} messages came ({raised_by('events')})"
    if heard.num_bytes >= limits.inflated:
        return f"{limits.inflated:,} bytes came ({raised_by('inflated')})"
    return ""


def _drain(
    zmq: Any, socket: Any, heard: Heard, captures: Callable[[bytes], FileIO], limits: Limits
) -> None:
    """Take what had come before it ended."""
    for _ in range(QUEUED):
        if not socket.poll(0) or _take(socket.recv_multipart(zmq.NOBLOCK), heard, captures, limits):
            return
