"""What a message of KV cache events says.

[topic, seq, batch]     as `encodings.published` has it; batch is [ts, [event, ...], data-parallel
                        rank]
["BlockStored", block_hashes, parent_block_hash, token_ids, block_size, lora_id, medium, lora_name,
    extra_keys, group_idx, ...]
["BlockRemoved", block_hashes, medium, group_idx, ...]
["AllBlocksCleared"]    or each as a map with its name under "type"

Layers of another kind of attention have blocks of their own, of another group with the same hashes.

The format: vLLM, `vllm/distributed/kv_events.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from stepscope.ingest.readers.text.fields import whole

STORED, REMOVED, CLEARED = "BlockStored", "BlockRemoved", "AllBlocksCleared"
NAMES = (STORED, REMOVED, CLEARED)
# Where an event that is a list has the medium that holds the block, and the group of layers.
_MEDIUM_AT = {STORED: 6, REMOVED: 2}
_GROUP_AT = {STORED: 9, REMOVED: 3}
LIMIT_MEDIUM_CHARS = 64
LAST_GROUP = 1 << 16


class CacheEvent(NamedTuple):
    """An event: its kind, None where it is none that is known, its hashes, and where they lie."""

    kind: str | None
    hashes: list[Any]
    medium: str
    group: int = 0


def is_batch(value: Any) -> bool:
    """Whether it is a batch of events: when, and which."""
    if not isinstance(value, list) or len(value) < 2 or not isinstance(value[1], list):
        return False
    return isinstance(value[0], int | float) and not isinstance(value[0], bool)


def cache_event(event: Any) -> CacheEvent:
    """What an event says."""
    if isinstance(event, dict):
        kind, hashes, medium = event.get("type"), event.get("block_hashes"), event.get("medium")
        group = event.get("group_idx")
    elif isinstance(event, list) and event:
        kind = event[0] if isinstance(event[0], str) else None
        hashes = event[1] if len(event) > 1 else None
        medium, group = (_at(event, places.get(kind or "")) for places in (_MEDIUM_AT, _GROUP_AT))
    else:
        return CacheEvent(None, [], "")
    medium = medium[:LIMIT_MEDIUM_CHARS] if isinstance(medium, str) else ""
    if kind in (STORED, REMOVED) and isinstance(hashes, list):
        return CacheEvent(str(kind), hashes, medium, whole(group, LAST_GROUP) or 0)
    return CacheEvent(CLEARED if kind == CLEARED else None, [], medium)


def _at(event: list[Any], place: int | None) -> Any:
    return event[place] if place is not None and place < len(event) else None
