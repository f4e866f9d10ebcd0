"""Messages that engines publish over ZMQ, as they are captured: msgpack, one behind the other.

[topic, seq, payload]               seq may be 8 bytes, highest first; the payload packed once more
[topic, seq, payload, received]     or not; `received` is when it came, in nanoseconds since 1970,
                                    as `stepscope listen` keeps it
payload                             by itself is a message, too

The format: vLLM, `vllm/distributed/kv_events.py`, and the publishers of forward pass metrics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stepscope.ingest.readers.encodings.inflate import Inflater
from stepscope.ingest.readers.encodings.msgpack_stream import Messages, decoded
from stepscope.ingest.readers.text.fields import whole

LIMIT_TOPIC_CHARS = 256
_LAST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Published:
    """A message: its topic, its number, what it holds, and when it came where that is kept."""

    topic: str
    seq: int | None
    payload: Any
    received_ns: int | None = None


def published(message: Any) -> Published:
    """A message out of what a capture holds, its payload decoded."""
    if not _is_envelope(message):
        return Published("", None, message)
    topic, seq, payload, *rest = message
    if isinstance(topic, bytes):
        topic = topic.decode("utf-8", "replace")
    if isinstance(seq, bytes):
        seq = int.from_bytes(seq[:8])
    if isinstance(payload, bytes):
        payload = decoded(payload)
    received_ns = whole(rest[0], _LAST) if rest else None
    return Published(topic[:LIMIT_TOPIC_CHARS], whole(seq, _LAST), payload, received_ns)


def _is_envelope(message: Any) -> bool:
    is_list = isinstance(message, list) and len(message) in {3, 4}
    return is_list and isinstance(message[0], str | bytes)


@dataclass(slots=True)
class Numbers:
    """The numbers of what a publisher sends, each one more than the last."""

    last: int | None = None

    def take(self, number: int | None) -> tuple[int, bool]:
        """How many are missing before this one; and whether it repeats or starts over."""
        if number is None:
            return 0, False
        last, self.last = self.last, number
        if last is None:
            return 0, False
        return max(number - last - 1, 0), number <= last


def damage_of(messages: Messages, blocks: Inflater) -> list[str]:
    """A sentence for each thing that ended a capture early."""
    notes = [f"{blocks.damage}; all whole messages before are kept"] if blocks.damage else []
    if messages.beyond:
        notes.append(f"{messages.beyond}; all before is kept")
    if messages.damaged_at is not None:
        notes.append(f"not msgpack from byte {messages.damaged_at} on; all before is kept")
    if messages.is_cut_off:
        notes.append("cut off within a message; all whole messages are kept")
    return notes
