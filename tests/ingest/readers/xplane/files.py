"""XPlane's protobuf, written and walked by hand: fields as `xplane.proto` numbers them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

NS = 1_000
"""Picoseconds."""


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def field(number: int, value: int | str | bytes) -> bytes:
    """A field that is a number, a text or a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


class Plane:
    """A plane that numbers its names as they come."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.names: dict[str, int] = {}
        self.keys: dict[str, int] = {}
        self.lines: list[bytes] = []

    def event(self, name: str, begin_ps: int, dur_ps: int, **stats: int | str) -> bytes:
        """An event with arguments: texts stand in the table of names, as long ones do."""
        number = self.names.setdefault(name, len(self.names) + 1)
        told = (self._stat(key, value) for key, value in stats.items())
        said = field(1, number) + field(2, begin_ps) + field(3, dur_ps)
        return said + b"".join(field(4, each) for each in told)

    def _stat(self, key: str, value: int | str) -> bytes:
        number = field(1, self._key(key))
        return number + (field(4, value) if isinstance(value, int) else field(7, self._key(value)))

    def _key(self, name: str) -> int:
        return self.keys.setdefault(name, len(self.keys) + 1)

    def line(self, name: str, *events: bytes, since_ns: int = 0, number: int = 1) -> None:
        head = field(1, number) + field(2, name) + field(3, since_ns)
        self.lines.append(head + b"".join(field(4, event) for event in events))

    def packed(self) -> bytes:
        """The plane: names behind the lines, as XLA writes them."""
        return b"".join((
            field(2, self.name), *(field(3, line) for line in self.lines),
            *_entries(4, self.names), *_entries(5, self.keys),
        ))  # fmt: skip


def _entries(number: int, names: Mapping[str, int]) -> Iterator[bytes]:
    for name, key in names.items():
        yield field(number, field(1, key) + field(2, field(1, key) + field(2, name)))


def space(*planes: Plane) -> bytes:
    return b"".join(field(1, plane.packed()) for plane in planes) + field(4, "host-1")


def two_steps(*, marked: bool = True) -> bytes:
    """Two steps on a GPU: a thread marks them, another one launches a kernel and a copy in each."""
    host, device = Plane("/host:CPU"), Plane("/device:GPU:0")
    first = {"step_num": 7} if marked else {}
    second = {"step_num": 8} if marked else {}
    launch, copy = "cuLaunchKernel", "cuMemcpyAsync"
    marks = (
        host.event("train", 0, 100 * NS, **first),
        host.event("train", 200 * NS, 60 * NS, **second),
    )
    calls = (
        host.event(launch, 10 * NS, 10 * NS, correlation_id=1, _p=4, _pt=2),
        host.event(copy, 30 * NS, 10 * NS, correlation_id=2),
        host.event(launch, 210 * NS, 10 * NS, correlation_id=3),
    )
    kernels = (
        device.event("gemm", 40 * NS, 50 * NS, correlation_id=1, hlo_op="dot.1", _c=4, _ct=2),
        device.event("gemm", 230 * NS, 60 * NS, correlation_id=3),
    )
    copied = device.event("MemcpyH2D", 100 * NS, 10 * NS, correlation_id=2)
    host.line("python", *marks, since_ns=1_000)
    host.line("launcher", *calls, since_ns=1_000, number=2)
    device.line("Stream #3(Kernel)", *kernels, since_ns=1_000)
    device.line("Stream #4(MemcpyH2D)", copied, since_ns=1_000)
    return space(host, device)


def fields_of(message: bytes) -> Iterable[tuple[int, Any]]:
    """Every field of a message, walked a byte at a time."""
    at = 0
    while at < len(message):
        tag, at = _number(message, at)
        if tag & 7 == 0:
            value, at = _number(message, at)
            yield tag >> 3, value
            continue
        length, at = _number(message, at) if tag & 7 == 2 else ({1: 8, 5: 4}[tag & 7], at)
        yield tag >> 3, message[at : at + length]
        at += length


def _number(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (message[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if message[at - 1] < 128:
            return number, at
