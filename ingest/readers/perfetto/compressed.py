"""Packets that hold other packets, compressed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from stepscope.ingest.limits import Limits, raised_by
from stepscope.ingest.readers.encodings.unzstd import unzstd
from stepscope.ingest.readers.perfetto.split import Packets, PacketStream

KINDS = ("compressed_packets", "zstd_compressed_packets")
_FREE_BYTES = 1 << 20


class Compressed:
    """Inflates packets within limits; `skipped` counts those that were left out or cut.

    `is_open` while packets are given: none of them is itself such a packet.
    """

    def __init__(self, limits: Limits) -> None:
        self.skipped: dict[str, int] = {}
        self.is_open = False
        self._limits = limits
        self._num_left = limits.inflated

    def packets(self, kind: str, content: bytes) -> Iterator[Packets]:
        """The packets that a packet of one of `KINDS` holds."""
        most = max(_FREE_BYTES, self._limits.ratio * len(content))
        most = min(most, self._limits.event, self._num_left)
        inflated = _inflated(kind, content, most + 1)
        if inflated is None:
            self._skip("damaged compressed packets")
            return
        if len(inflated) > most:
            which = "inflated" if most == self._num_left else "ratio"
            self._skip(f"compressed packets, in part, that inflate too far ({raised_by(which)})")
        self._num_left -= min(most, len(inflated))
        self.is_open = True
        yield from PacketStream([inflated[:most]], self._limits)
        self.is_open = False

    def _skip(self, what: str) -> None:
        self.skipped[what] = self.skipped.get(what, 0) + 1


def _inflated(kind: str, content: bytes, most: int) -> bytes | None:
    """At most so many bytes of what it holds; None where it holds nothing."""
    if kind == "compressed_packets":
        try:
            return zlib.decompressobj().decompress(content, most)
        except zlib.error:
            return None
    found = bytearray()
    for part in unzstd(lambda: iter((content,))):
        found += part
        if len(found) >= most:
            break
    return bytes(found[:most]) or None
