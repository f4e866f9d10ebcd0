"""Whose the blocks are that are claimed and freed in vLLM's pool."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.ingest.attach.hooks import Hooks
from stepscope.ingest.attach.vllm.block_pool import KVBlocks
from tests.ingest.attach.vllm.kv_stand_in import KVCacheManager
from tests.ingest.attach.vllm.stand_in import Request, Status


@pytest.fixture
def manager() -> KVCacheManager:
    return KVCacheManager(2, 4, caches=False)


@pytest.fixture
def blocks(manager: KVCacheManager) -> KVBlocks:
    followed = KVBlocks(manager, Hooks(lambda error: pytest.fail(str(error))))
    followed.find_owners(output({}))
    followed.asks_later = followed.is_told
    return followed


def output(new: dict[str, list[int] | None]) -> Any:
    """A SchedulerOutput: what requests that go on have got in one group of blocks."""
    ids = [None if each is None else (each,) for each in new.values()]
    return SimpleNamespace(scheduled_cached_reqs=SimpleNamespace(req_ids=[*new], new_block_ids=ids))


def running(name: str) -> Request:
    return Request(name, 4, status=Status.RUNNING)


def told(blocks: KVBlocks) -> list[tuple[str, list[int], str, int | None]]:
    return [(each.op, [*each.ids], each.owner, each.group) for each in blocks.changes]


def test_claims_of_a_call_are_those_of_whom_its_output_names(
    manager: KVCacheManager, blocks: KVBlocks
) -> None:
    for name in ("a", "b"):
        manager.allocate_slots(running(name), 4)
    blocks.find_owners(output({"a": [1], "x": None, "b": [2]}))

    assert told(blocks) == [("claim", [1], "a", 0), ("claim", [2], "b", 0)]


def test_a_block_that_changes_hands_in_one_call_was_whose_who_gave_it_back(
    manager: KVCacheManager, blocks: KVBlocks
) -> None:
    victim = running("victim")
    manager.allocate_slots(victim, 8)
    manager.free(victim)
    manager.allocate_slots(running("a"), 8)
    blocks.find_owners(output({"a": [2, 1]}))

    assert told(blocks) == [
        ("claim", [1, 2], "victim", 0), ("release", [2, 1], "victim", 0), ("claim", [2, 1], "a", 0),
    ]  # fmt: skip


def test_who_is_not_in_the_batch_is_found_in_the_managers_books(
    manager: KVCacheManager, blocks: KVBlocks
) -> None:
    manager.allocate_slots(running("remote"), 4)
    blocks.find_owners(output({}))

    assert told(blocks) == [("claim", [1], "remote", 0)]


def test_a_version_whose_output_names_no_blocks_is_asked_for_its_locals(
    manager: KVCacheManager,
) -> None:
    blocks = KVBlocks(manager, Hooks(lambda error: pytest.fail(str(error))))
    blocks.find_owners(SimpleNamespace())
    blocks.asks_later = blocks.is_told
    manager.allocate_slots(running("a"), 4)

    assert told(blocks) == [("claim", [1], "a", 0)]
