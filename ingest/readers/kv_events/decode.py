"""What a message of KV cache events says.

[topic, seq, batch]     as `encodings.published` has it; batch is [ts, [event, ...], data-parallel
                        rank]
["BlockStored", block_hashes, parent_block_hash, token_ids, block_size, lora_id, medium, ...]
["BlockRemoved", block_hashes, medium, ...]
["AllBlocksCleared"]    or each as a map with its name under "type"

The format: vLLM, `vllm/distributed/kv_events.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

STORED, REMOVED, CLEARED = "BlockStored", "BlockRemoved", "AllBlocksCleared"
NAMES = (STORED, REMOVED, CLEARED)
# Where an event that is a list has the medium that holds the block.
_MEDIUM_AT = {STORED: 6, REMOVED: 2, CLEARED: -1}
LIMIT_MEDIUM_CHARS = 64


class CacheEvent(NamedTuple):
    """An event: its kind, None where it is none that is known, its hashes, and where they lie."""

    kind: str | None
    hashes: list[Any]
    medium: str


def is_batch(value: Any) -> bool:
    """Whether it is a batch of events: when, and which."""
    if not isinstance(value, list) or len(value) < 2 or not isinstance(value[1], list):
        return False
    return isinstance(value[0], int | float) and not isinstance(value[0], bool)


def cache_event(event: Any) -> CacheEvent:
    """What an event says."""
    if isinstance(event, dict):
        kind, hashes, medium = event.get("type"), event.get("block_hashes"), event.get("medium")
    elif isinstance(event, list) and event:
        kind = event[0]
        hashes = event[1] if len(event) > 1 else None
        at = _MEDIUM_AT.get(kind, -1) if isinstance(kind, str) else -1
        medium = event[at] if 0 < at < len(event) else None
    else:
        return CacheEvent(None, [], "")
    medium = medium[:LIMIT_MEDIUM_CHARS] if isinstance(medium, str) else ""
    if kind in (STORED, REMOVED) and isinstance(hashes, list):
        return CacheEvent(str(kind), hashes, medium)
    return CacheEvent(CLEARED if kind == CLEARED else None, [], medium)
