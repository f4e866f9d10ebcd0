"""Blocks whose contents a prefix cache can find or no longer can, and how many it can find.

A block is known by its hash, so what is told is which contents the cache holds, not for which
request: blocks are numbered as they come, nobody claims or releases them (`cache` and `evict` make
nobody an owner), and in the place of an owner stands the cache. The tokens of blocks are left out,
as contents are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.readers.encodings.published import Numbers, published
from stepscope.ingest.readers.kv_events.decode import CLEARED, STORED, cache_event, is_batch
from stepscope.ingest.readers.text.collect import Line, LogRows, Source
from stepscope.ingest.readers.text.fields import Number, whole
from stepscope.ingest.times import POSITION_NS

NO_BATCH, NO_EVENT = "messages that are not a batch of events", "events of no known kind"
NOT_HASHES = "blocks whose hash is neither a number nor bytes"
MISSING = "batches that are missing by their numbers"
AGAIN = "batches whose numbers repeat or start over"
BEFORE = "blocks removed that were stored before the capture"
CACHE = "prefix cache"
LAST_SECOND = 1 << 32
NUM_HASH_BYTES, LIMIT_HASH_CHARS = 8, 64
"""So much of a hash tells it from others; the recorder of vLLM keeps as many bytes."""
Hash = int | bytes | str
Key = tuple[str, int, Hash]
"""What tells a block from others: its medium, the group of layers that it is of, its hash."""


@dataclass(slots=True)
class _Cache:
    """The blocks that a rank's prefix cache holds, and the numbers of all."""

    batches: Numbers = field(default_factory=Numbers)
    numbers: dict[Key, int] = field(default_factory=dict)
    held: dict[Key, int] = field(default_factory=dict)

    def number(self, key: Key) -> int:
        return self.numbers.setdefault(key, len(self.numbers))


class KvEvents:
    """Takes one message after the other."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self.rows = LogRows(limits)
        self._caches: dict[str, _Cache] = {}

    def take(self, message: Any) -> None:
        """Add a batch of events, or count a message that is none."""
        said = published(message)
        batch = said.payload
        if not is_batch(batch):
            self.rows.skipped[NO_BATCH] += 1
            return
        rank = whole(batch[2], 1 << 20) if len(batch) > 2 else None
        label = "" if rank is None else str(rank)
        source = self.rows.source("KV events", Line("", origin=said.topic), label, rank or 0)
        cache = self._caches.setdefault(source.name, _Cache())
        self._count(cache, said.seq)
        self.rows.read["batches of KV events"] += 1
        ts_ns = _time(batch[0], source)
        for event in batch[1]:
            self._event(event, ts_ns, source, cache)
        held = {"cached blocks": Number(float(len(cache.held)), "blocks")}
        self.rows.counters(source, ts_ns, held)

    def _count(self, cache: _Cache, seq: int | None) -> None:
        missing, is_again = cache.batches.take(seq)
        self.rows.skipped[MISSING] += missing
        self.rows.repaired[AGAIN] += is_again

    def _event(self, event: Any, ts_ns: int, source: Source, cache: _Cache) -> None:
        kind, hashes, medium, group = cache_event(event)
        if kind is None:
            self.rows.skipped[NO_EVENT] += 1
            return
        self.rows.read[f"{kind} events"] += 1
        if kind == CLEARED:
            for key in cache.held:
                self._add("evict", key, ts_ns, source, cache)
            cache.held.clear()
        for value in hashes:
            if not isinstance(value, int | bytes | str):
                self.rows.skipped[NOT_HASHES] += 1
            elif kind == STORED:
                cache.held[medium, group, value] = 1
                self._add("cache", (medium, group, value), ts_ns, source, cache)
            else:
                self._remove((medium, group, value), ts_ns, source, cache)

    def _remove(self, key: Key, ts_ns: int, source: Source, cache: _Cache) -> None:
        if cache.held.pop(key, None) is None:
            self.rows.inferred[BEFORE] += 1
        self._add("evict", key, ts_ns, source, cache)

    def _add(self, op: str, key: Key, ts_ns: int, source: Source, cache: _Cache) -> None:
        medium, _, value = key
        self.rows.add(
            "allocations",
            source,
            ts_ns,
            resource="kv-block",
            id=cache.number(key),
            op=op,
            owner=f"{CACHE} ({medium})" if medium else CACHE,
            block_hash=_text(value),
        )


def _text(value: Hash) -> str:
    if isinstance(value, bytes):
        return value[:NUM_HASH_BYTES].hex()
    return str(value)[:LIMIT_HASH_CHARS]


def _time(seconds: float, source: Source) -> int:
    """The batch's time; behind the batch before where it has none that makes sense."""
    if math.isfinite(seconds) and 0 <= seconds < LAST_SECOND:
        source.stamps["dated"] += 1
        source.last_ns = round(seconds * 1e9)
    else:
        source.stamps["position"] += 1
        source.last_ns = (source.last_ns or 0) + POSITION_NS
    return source.last_ns
