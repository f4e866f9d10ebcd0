"""Whole captures of KV cache events, against a plain walk over their messages.

One is of an SGLang that ran; the other is encoded as vLLM's publisher does, of a cache that throws
out what was used longest ago.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import report_of

POOL_BLOCKS = 40
"""The pages of the pool that `make_sglang.py` gives SGLang."""


class Event(msgspec.Struct, omit_defaults=True, tag=True):
    """As both engines declare it: a map with its name under `type`, without what is not told."""


class BlockStored(Event):
    block_hashes: list[int | bytes]
    parent_block_hash: int | bytes | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None
    medium: str | None = None
    group_idx: int | None = None


class BlockRemoved(Event):
    block_hashes: list[int | bytes]
    medium: str | None = None
    group_idx: int | None = None


class AllBlocksCleared(Event):
    pass


class Batch(msgspec.Struct, array_like=True, omit_defaults=True):
    ts: float
    events: list[BlockStored | BlockRemoved | AllBlocksCleared]
    data_parallel_rank: int | None = None


@dataclass
class Walk:
    """What events say one after the other: what is held, and each change of it."""

    held: set[tuple[int, object]]
    changes: list[tuple[int, str, str]]
    numbers: list[tuple[int, int]]
    kinds: Counter[str]


def walked(messages: list[list[bytes]]) -> Walk:
    walk = Walk(set(), [], [], Counter())
    for _, _, payload in messages:
        batch = msgspec.msgpack.decode(payload, type=Batch)
        ts_ns = round(batch.ts * 1e9)
        for event in batch.events:
            walk.kinds[f"{type(event).__name__} events"] += 1
            changes = list(_changes(event, walk.held))
            walk.changes += [(ts_ns, op, _text(value)) for op, _, value in changes]
            for op, group, value in changes:
                (walk.held.add if op == "cache" else walk.held.discard)((group, value))
        walk.numbers.append((ts_ns, len(walk.held)))
    return walk


def _changes(event: Event, held: set[tuple[int, object]]) -> Iterator[tuple[str, int, object]]:
    if isinstance(event, AllBlocksCleared):
        yield from (("evict", *each) for each in held)
    if isinstance(event, BlockStored | BlockRemoved):
        op = "cache" if isinstance(event, BlockStored) else "evict"
        yield from ((op, event.group_idx or 0, value) for value in event.block_hashes)


def _text(value: object) -> str:
    return value[:8].hex() if isinstance(value, bytes) else str(value)


def of_vllm() -> list[list[bytes]]:
    """Prefixes that come and go in a cache of 12 blocks, in two groups of layers."""
    draw, seq = random.Random(5), 0
    encoder, messages = msgspec.msgpack.Encoder(), list[list[bytes]]()
    used: dict[tuple[int, bytes], None] = {}
    for turn in range(120):
        events: list[BlockStored | BlockRemoved | AllBlocksCleared] = []
        prefix = draw.randrange(6)
        hashes = [bytes([prefix, place]) * 16 for place in range(draw.randrange(1, 5))]
        for group in range(2):
            new = [value for value in hashes if (group, value) not in used]
            for value in hashes:
                used.pop((group, value), None)
                used[group, value] = None
            if new:
                events.append(BlockStored(list(new), None, [1, 2], 2, None, "GPU", group))
        while len(used) > 12:
            group, value = next(iter(used))
            del used[group, value]
            events.append(BlockRemoved([value], "GPU", group))
        if turn == 60:
            used.clear()
            events.append(AllBlocksCleared())
        if events:
            payload = encoder.encode(Batch(1_000.0 + turn / 8, events, 0))
            messages.append([b"kv", seq.to_bytes(8, "big"), payload])
            seq += 1
    return messages


def read_back(file: Path) -> list[list[bytes]]:
    """The messages of a capture, by msgspec alone: each stands behind the other."""
    unpacked, content = [], file.read_bytes()
    while content:
        length = _end(content)
        unpacked.append(msgspec.msgpack.decode(content[:length], type=list[bytes]))
        content = content[length:]
    return unpacked


def _end(content: bytes) -> int:
    """Where a message of three byte strings ends."""
    at = 1
    for _ in range(3):
        kind = content[at]
        width = {0xC4: 1, 0xC5: 2, 0xC6: 4}[kind]
        at += 1 + width + int.from_bytes(content[at + 1 : at + 1 + width], "big")
    return at


@pytest.fixture(scope="module", params=["SGLang", "vLLM"])
def capture(
    request: pytest.FixtureRequest, sample_traces: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    if request.param == "SGLang":
        return sample_traces / "sglang_kv_events.msgpack"
    file = tmp_path_factory.mktemp("vllm") / "events.msgpack"
    file.write_bytes(b"".join(map(msgspec.msgpack.encode, of_vllm())))
    return file


@pytest.fixture(scope="module")
def walk(capture: Path) -> Walk:
    return walked(read_back(capture))


@pytest.fixture(scope="module")
def trace(capture: Path) -> Trace:
    return Trace.open(capture)


def test_every_event_of_a_capture_is_read_and_none_is_odd(trace: Trace, walk: Walk) -> None:
    report = report_of(trace)

    assert report.read == {"batches of KV events": len(walk.numbers), **walk.kinds}
    assert (report.skipped, report.repaired, report.inferred) == ({}, {}, {})
    assert set(walk.kinds) == {f"{kind.__name__} events" for kind in Event.__subclasses__()}
    assert trace.manifest.closed


def test_every_block_is_stored_and_evicted_when_its_event_says(trace: Trace, walk: Walk) -> None:
    told = rows(trace, "allocations", "ts_ns", "op", "block_hash")

    assert Counter(told) == Counter(walk.changes)
    assert len(walk.changes) > 200


def test_the_cache_holds_as_many_blocks_after_each_batch_as_were_stored_and_not_evicted(
    trace: Trace, walk: Walk
) -> None:
    assert rows(trace, "counters", "ts_ns", "value") == walk.numbers
    assert 5 < max(number for _, number in walk.numbers) <= POOL_BLOCKS


def test_blocks_of_the_same_hash_in_two_groups_of_layers_are_two(tmp_path: Path) -> None:
    events = [BlockStored([7], None, [1], 1, None, "GPU", group) for group in range(2)]
    batches = [Batch(1.0, [*events]), Batch(2.0, [BlockRemoved([7], "GPU", 1)])]
    file = tmp_path / "events.msgpack"
    file.write_bytes(b"".join(map(msgspec.msgpack.encode, batches)))

    trace = Trace.open(file)

    assert rows(trace, "allocations", "id", "op") == [(0, "cache"), (1, "cache"), (1, "evict")]
    assert rows(trace, "counters", "value") == [2.0, 1.0]


def test_the_group_of_events_that_are_lists_stands_behind_their_extra_keys(tmp_path: Path) -> None:
    stored: list[Any] = ["BlockStored", [7], None, [1], 1, None, "GPU", None, None]
    removed: list[Any] = ["BlockRemoved", [7], "GPU"]
    batches = [[1.0, [[*stored, 0], [*stored, 1]]], [2.0, [[*removed, 1]]]]
    file = tmp_path / "events.msgpack"
    file.write_bytes(b"".join(map(msgspec.msgpack.encode, batches)))

    assert rows(Trace.open(file), "counters", "value") == [2.0, 1.0]
