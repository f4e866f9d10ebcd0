"""Reader of captured KV cache events, as vLLM and SGLang publish them: msgpack, one by one.

[topic, seq, batch]     as `encodings.published` has it; batch is [ts, [event, ...], data-parallel
                        rank]
["BlockStored", block_hashes, parent_block_hash, token_ids, block_size, lora_id, medium, ...]
["BlockRemoved", block_hashes, medium, ...]
["AllBlocksCleared"]    or each as a map with its name under "type"

A block is known by its hash, so what is told is which contents the prefix cache holds, not for
which request: blocks are numbered as they come, and their owner is the cache. The tokens of blocks
are left out, as contents are. The format: vLLM, `vllm/distributed/kv_events.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepscope.ingest.errors import LimitExceeded, TraceError, TruncatedTrace
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import ClockInfo, Manifest, ReadReport
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.inflate import blocks_of
from stepscope.ingest.readers.encodings.msgpack_stream import Messages
from stepscope.ingest.readers.encodings.published import Numbers, damage_of, published
from stepscope.ingest.readers.seam import OneFile
from stepscope.ingest.readers.text.collect import POSITION_NS, Line, LogRows, Source
from stepscope.ingest.readers.text.fields import Number, whole

STORED, REMOVED, CLEARED = "BlockStored", "BlockRemoved", "AllBlocksCleared"
_NAMES = (STORED, REMOVED, CLEARED)
# Where an event that is a list has the medium that holds the block.
_MEDIUM_AT = {STORED: 6, REMOVED: 2, CLEARED: -1}
_FIRST_BYTES = (0x92, 0x93, 0x94, 0xDC)
NO_BATCH, NO_EVENT = "messages that are no batch of events", "events of no known kind"
NOT_HASHES = "blocks whose hash is neither a number nor bytes"
UNDECODED = "messages that cannot be decoded"
MISSING = "batches that are missing by their numbers"
AGAIN = "batches whose numbers repeat or start over"
BEFORE = "blocks removed that were stored before the capture"
CUT_OFF = "cut off by the end of the file"
CACHE = "prefix cache"
LAST_SECOND = 1 << 32
LIMIT_MEDIUM_CHARS = 64
Hash = int | bytes | str


@dataclass(slots=True)
class _Cache:
    """The blocks that a rank's prefix cache holds, by medium and hash, and their numbers."""

    batches: Numbers = field(default_factory=Numbers)
    numbers: dict[tuple[str, Hash], int] = field(default_factory=dict)
    claimed: dict[int, int] = field(default_factory=dict)
    held: dict[tuple[str, Hash], int] = field(default_factory=dict)

    def number(self, key: tuple[str, Hash]) -> int:
        return self.numbers.setdefault(key, len(self.numbers))


class KvEventsReader(OneFile):
    """Reads which blocks a prefix cache stored and removed, as allocations and a counter."""

    name = "KV cache events of vLLM (msgpack)"
    one_per_rank = False

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell lists in msgpack in whose first 64 KiB an event is named."""
        is_list = head[:1] in {bytes([first]) for first in _FIRST_BYTES}
        return is_list and any(name.encode() in head for name in _NAMES)

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read allocations and the counter of held blocks; raises `TraceError`."""
        blocks = blocks_of(path, progress, limits)
        messages, events = Messages(blocks, limits.message), _Events(limits)
        notes = []
        try:
            for message in messages:
                events.take(message)
        except LimitExceeded as error:
            notes.append(f"{error.what} ({error.todo}); all before is kept")
        notes += damage_of(messages, blocks)
        rows = events.rows
        if not rows.read:
            what = "no batch of KV events in it"
            if notes:
                raise TruncatedTrace(
                    f"{what}: {notes[0]}", where=str(path), todo="capture it again"
                )
            raise TraceError(what, where=str(path))
        rows.skipped[UNDECODED] += messages.num_undecoded
        rows.skipped[CUT_OFF] += messages.is_cut_off
        tables: dict[str, Frame] = dict(rows.tables())
        return tables, _manifest(rows, tables, notes)


class _Events:
    """Takes one message after the other."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self.rows = LogRows(limits)
        self._caches: dict[str, _Cache] = {}

    def take(self, message: Any) -> None:
        """Add a batch of events, or count a message that is none."""
        said = published(message)
        batch = said.payload
        if not _is_batch(batch):
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
        kind, hashes, medium = _told(event)
        if kind is None:
            self.rows.skipped[NO_EVENT] += 1
            return
        self.rows.read[f"{kind} events"] += 1
        if kind == CLEARED:
            for key in list(cache.held):
                self._add("release", key, ts_ns, source, cache)
            cache.held.clear()
        for value in hashes:
            if not isinstance(value, int | bytes | str):
                self.rows.skipped[NOT_HASHES] += 1
            elif kind == STORED:
                self._store((medium, value), ts_ns, source, cache)
            else:
                self._remove((medium, value), ts_ns, source, cache)

    def _store(self, key: tuple[str, Hash], ts_ns: int, source: Source, cache: _Cache) -> None:
        is_held = key in cache.held
        self._add("share" if is_held else "claim", key, ts_ns, source, cache)
        cache.held[key] = 1

    def _remove(self, key: tuple[str, Hash], ts_ns: int, source: Source, cache: _Cache) -> None:
        if cache.held.pop(key, None) is None:
            self.rows.inferred[BEFORE] += 1
        self._add("release", key, ts_ns, source, cache)

    def _add(
        self, op: str, key: tuple[str, Hash], ts_ns: int, source: Source, cache: _Cache
    ) -> None:
        number = cache.number(key)
        generation = cache.claimed.get(number, -1)
        if op == "claim":
            generation = cache.claimed[number] = generation + 1
        self.rows.add(
            "allocations",
            source,
            ts_ns,
            resource="kv-block",
            id=number,
            op=op,
            owner=f"{CACHE} ({key[0]})" if key[0] else CACHE,
            generation=generation if generation >= 0 else None,
        )


def _is_batch(value: Any) -> bool:
    if not isinstance(value, list) or len(value) < 2 or not isinstance(value[1], list):
        return False
    return isinstance(value[0], int | float) and not isinstance(value[0], bool)


def _told(event: Any) -> tuple[str | None, list[Any], str]:
    """Kind, hashes and medium of an event; no kind where it is none that is known."""
    if isinstance(event, dict):
        kind, hashes, medium = event.get("type"), event.get("block_hashes"), event.get("medium")
    elif isinstance(event, list) and event:
        kind = event[0]
        hashes = event[1] if len(event) > 1 else None
        at = _MEDIUM_AT.get(kind, -1) if isinstance(kind, str) else -1
        medium = event[at] if 0 < at < len(event) else None
    else:
        return None, [], ""
    medium = medium[:LIMIT_MEDIUM_CHARS] if isinstance(medium, str) else ""
    if kind in (STORED, REMOVED) and isinstance(hashes, list):
        return str(kind), hashes, medium
    return (CLEARED if kind == CLEARED else None), [], medium


def _time(seconds: float, source: Source) -> int:
    """The batch's time; behind the batch before where it has none that makes sense."""
    if math.isfinite(seconds) and 0 <= seconds < LAST_SECOND:
        source.stamps["dated"] += 1
        source.last_ns = round(seconds * 1e9)
    else:
        source.stamps["position"] += 1
        source.last_ns = (source.last_ns or 0) + POSITION_NS
    return source.last_ns


def _manifest(rows: LogRows, tables: dict[str, Frame], notes: list[str]) -> Manifest:
    sources = sorted(rows.sources.values(), key=lambda source: source.rank)
    about = ["blocks are numbered as their hashes come; which request they are of is not told"]
    if any(source.stamps["position"] for source in sources):
        about.append("batches without a time are placed 1 us behind the batch before")
    report = ReadReport(
        read=dict(rows.read),
        skipped={what: num for what, num in rows.skipped.items() if num},
        repaired={what: num for what, num in rows.repaired.items() if num},
        inferred={what: num for what, num in rows.inferred.items() if num},
        notes=(*notes, *about),
    )
    return Manifest(
        producer="vLLM KV events",
        clock=ClockInfo("wall"),
        ranks=tuple(source.rank for source in sources),
        config={"sources": {str(source.rank): source.name for source in sources}},
        tables=dict.fromkeys(tables, "inferred"),
        closed=not notes,
        report=report,
    )
