"""Packets of a Perfetto file: where each begins and ends, also after damage.

A file is a protobuf message whose field 1 repeats, once per packet: `0a`, the packet's length,
the packet. So files can be cut anywhere, and joined.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from stepscope.ingest.limits import Limits, raised_by
from stepscope.ingest.readers.encodings.protobuf_columns import Content, Places
from stepscope.ingest.readers.encodings.protobuf_fields import field_at

TAG = 0x0A
_CHAIN = 4
"""So many packets one after the other are no accident."""
_FEW = 16
_LONGEST_HEAD = 20
_TRIES = 1 << 12
_FIRST_FIELDS = 64
"""So many places and fields are looked at, so that hostile bytes take no more than seconds."""
_SEQUENCE = 0x50  # the tag of trusted_packet_sequence_id, which a packet inside another lacks


@dataclass(frozen=True, slots=True)
class Packets:
    """Packets by where each begins and ends in some content."""

    content: Content
    begin: Places
    end: Places

    @classmethod
    def starting(cls, window: bytes, starts: array[int]) -> Packets:
        """Whole packets, by where their fields start."""
        content = Content(window)
        if len(starts) <= _FEW:
            fields = [field_at(window, at) or (at, at) for at in starts]
            return cls(content, *np.array(fields, np.int64).reshape(-1, 2).T)
        length, begin = content.varints(np.frombuffer(starts, np.int64) + 1)
        return cls(content, begin, begin + length.astype(np.int64))

    def __len__(self) -> int:
        return len(self.begin)

    def __getitem__(self, row: int) -> bytes:
        return self.content.bytes[self.begin[row] : self.end[row]]

    def parts(self, num: int) -> Iterator[Packets]:
        """The same in parts of at most so many."""
        for at in range(0, len(self), num):
            part = slice(at, at + num)
            yield Packets(self.content, self.begin[part], self.end[part])


class PacketStream:
    """Iterates over packets, block by block; the fields say afterwards what was wrong.

    `cut_off` tells that the file ends within a packet, `num_lost` how many bytes between packets
    are none, `num_too_large` how many packets were left out for their size.
    """

    def __init__(self, blocks: Iterable[bytes], limits: Limits) -> None:
        self.cut_off = False
        self.num_bytes = 0
        self.num_lost = 0
        self.num_too_large = 0
        self._blocks = blocks
        self._limit_bytes = limits.event
        self._to_skip = 0

    def __iter__(self) -> Iterator[Packets]:
        rest = b""
        for block in self._blocks:
            self.num_bytes += len(block)
            window = rest + block[self._to_skip :]
            self._to_skip = max(0, self._to_skip - len(block))
            packets, at = self._packets(window)
            rest = window[at:]
            yield packets
        self.cut_off = bool(rest or self._to_skip)
        # A length that is wrong swallows what follows it.
        yield self._packets(rest[_next(rest, 1) :])[0]

    def skipped(self) -> dict[str, int]:
        """What was left out for its size, counted."""
        what = f"packets of more than {self._limit_bytes:,} bytes ({raised_by('event')})"
        return {what: self.num_too_large} if self.num_too_large else {}

    def _packets(self, window: bytes) -> tuple[Packets, int]:
        """Whole packets, and where the first begins that is not whole."""
        starts = array("q")
        at, end = 0, len(window)
        while at < end:
            at = self._usual(window, at, starts)
            field = field_at(window, at)
            if field is None and end - at < _LONGEST_HEAD:
                break
            begin, until = field or (at, at)
            is_packet = until > at and window[at] == TAG
            if not is_packet or until - begin > self._limit_bytes:
                at = self._beyond(window, at, until)
                continue
            if until > end:
                break
            starts.append(at)
            at = until
        return Packets.starting(window, starts), at

    def _usual(self, window: bytes, at: int, starts: array[int]) -> int:
        """Find whole packets of usual size, as most are; gives where another begins."""
        add, limit_bytes = starts.append, self._limit_bytes
        end, last = len(window), len(window) - _LONGEST_HEAD
        while at < last and window[at] == TAG:
            length = window[at + 1]
            behind = at + 2 + length
            if length > 127:
                second = window[at + 2]
                if second > 127:
                    break
                behind += (second << 7) - 127
            if behind > end or behind - at > limit_bytes:
                break
            add(at)
            at = behind
        return at

    def _beyond(self, window: bytes, at: int, until: int) -> int:
        """Where to go on after what is not a packet, or too large."""
        is_packet = window[at] == TAG and until > at
        if is_packet and until <= len(window):
            self.num_too_large += 1
            return until
        found = _next(window, at + 1)
        if is_packet and found == len(window):
            self.num_too_large += 1
            self._to_skip = until - len(window)
            return found
        self.num_lost += found - at
        return found


def is_trace(head: bytes) -> bool:
    """Tell by the first bytes of a file whether it is one of packets: by all of the first."""
    field = field_at(head, 0) if head[:1] == bytes([TAG]) else None
    if field is None:
        return False
    begin, end = field
    tags = _tags(head[begin:end], whole=end <= len(head))
    return bool(tags) and head[end : end + 1] in (b"", bytes([TAG]))


def _next(window: bytes, start: int) -> int:
    """Where packets follow each other again; the end where they don't."""
    at = window.find(TAG, start)
    for _ in range(_TRIES):
        if at < 0:
            break
        if _follow(window, at):
            return at
        at = window.find(TAG, at + 1)
    return len(window)


def _follow(window: bytes, at: int) -> bool:
    """Whether packets that say their sequence begin here, one after the other."""
    for _ in range(_CHAIN):
        field = field_at(window, at) if window[at] == TAG else None
        if field is None or field[1] > len(window):
            return False
        if _SEQUENCE not in (_tags(window[field[0] : field[1]], whole=True) or ()):
            return False
        at = field[1]
        if at == len(window):
            break
    return True


def _tags(packet: bytes, *, whole: bool) -> set[int] | None:
    """The first tags of a message, None where bytes are none; it may end early if not whole."""
    at, tags = 0, set[int]()
    for _ in range(_FIRST_FIELDS):
        if at == len(packet):
            break
        field = field_at(packet, at)
        if field is None or field[1] > len(packet):
            return None if whole else tags
        tags.add(packet[at])
        at = field[1]
    return tags
