"""vLLM's pool of KV blocks in small, with those through whom a request gets blocks and frees them.

Where each is in vLLM 0.32, below `vllm/v1/core`: `block_pool.py`, `kv_cache_utils.py`,
`single_type_kv_cache_manager.py`, `kv_cache_coordinator.py`, `kv_cache_manager.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any


@dataclass(eq=False)
class Block:
    block_id: int
    ref_cnt: int = 0
    block_hash: str | None = None
    is_null: bool = False
    next_free_block: Block | None = None


class FreeBlockQueue:
    """The free blocks as a chain, the next to be taken first."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self.blocks = [*blocks]

    @property
    def fake_free_list_head(self) -> Block:
        chain = [Block(-1), *self.blocks, Block(-1)]
        for block, following in pairwise(chain):
            block.next_free_block = following
        return chain[0]


class BlockPool:
    def __init__(self, num_gpu_blocks: int, *, enable_caching: bool) -> None:
        self.num_gpu_blocks, self.enable_caching = num_gpu_blocks, enable_caching
        self.blocks = [Block(number) for number in range(num_gpu_blocks)]
        self.blocks[0].is_null, self.blocks[0].ref_cnt = True, 1
        self.free_block_queue = FreeBlockQueue(self.blocks[1:])

    def get_num_free_blocks(self) -> int:
        return len(self.free_block_queue.blocks)

    def get_new_blocks(self, num_blocks: int) -> list[Block]:
        free = self.free_block_queue.blocks
        taken, free[:] = free[:num_blocks], free[num_blocks:]
        for block in taken:
            block.ref_cnt, block.block_hash = 1, None
        return taken

    def touch(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            if block.ref_cnt == 0:
                self.free_block_queue.blocks.remove(block)
            block.ref_cnt += 1

    def free_blocks(self, ordered_blocks: Iterable[Block]) -> None:
        for block in ordered_blocks:
            block.ref_cnt -= 1
            if not block.ref_cnt and not block.is_null:
                self.free_block_queue.blocks.append(block)

    def cache_full_blocks(
        self, request: Any, blocks: list[Block], num_cached_blocks: int, num_full_blocks: int,
        block_size: int, kv_cache_group_id: int,
    ) -> None:  # fmt: skip
        for place in range(num_cached_blocks, num_full_blocks):
            blocks[place].block_hash = request.contents[place]

    def evict_blocks(self, block_ids: set[int]) -> None:
        for number in block_ids:
            self.blocks[number].block_hash = None

    def reset_prefix_cache(self) -> bool:
        if self.get_num_free_blocks() != self.num_gpu_blocks - 1:
            return False
        for block in self.blocks:
            block.block_hash = None
        return True


class SingleTypeKVCacheManager:
    def __init__(self, block_pool: BlockPool, block_size: int) -> None:
        self.block_pool, self.block_size, self.kv_cache_group_id = block_pool, block_size, 0
        self.req_to_blocks: dict[str, list[Block]] = defaultdict(list)

    def get_num_blocks_to_allocate(
        self, request_id: str, num_tokens: int, new_computed_blocks: Sequence[Block]
    ) -> int:
        held = len(new_computed_blocks) + len(self.req_to_blocks[request_id])
        evictable = sum(block.ref_cnt == 0 for block in new_computed_blocks)
        return max(-(-num_tokens // self.block_size) - held, 0) + evictable

    def add_local_computed_blocks(
        self, request_id: str, new_computed_blocks: Sequence[Block]
    ) -> None:
        self.block_pool.touch(new_computed_blocks)
        self.req_to_blocks[request_id] += new_computed_blocks

    def allocate_new_blocks(self, request_id: str, num_tokens: int) -> list[Block]:
        held = self.req_to_blocks[request_id]
        num_new = -(-num_tokens // self.block_size) - len(held)
        if num_new <= 0:
            return []
        new = self.block_pool.get_new_blocks(num_new)
        held += new
        return new

    def cache_blocks(self, request: Any, num_tokens: int) -> None:
        blocks = self.req_to_blocks[request.request_id]
        num_cached = sum(block.block_hash is not None for block in blocks)
        num_full = min(num_tokens // self.block_size, len(request.contents))
        if num_cached < num_full:
            self.block_pool.cache_full_blocks(
                request=request, blocks=blocks, num_cached_blocks=num_cached,
                num_full_blocks=num_full, block_size=self.block_size,
                kv_cache_group_id=self.kv_cache_group_id,
            )  # fmt: skip

    def free(self, request_id: str) -> None:
        self.block_pool.free_blocks(reversed(self.req_to_blocks.pop(request_id, [])))


class KVCacheCoordinator:
    def __init__(self, block_pool: BlockPool, block_size: int) -> None:
        self.single_type_managers = (SingleTypeKVCacheManager(block_pool, block_size),)

    def get_num_blocks_to_allocate(
        self, request_id: str, num_tokens: int, new_computed_blocks: Sequence[Block]
    ) -> int:
        return sum(
            manager.get_num_blocks_to_allocate(request_id, num_tokens, new_computed_blocks)
            for manager in self.single_type_managers
        )

    def allocate_new_computed_blocks(
        self, request_id: str, new_computed_blocks: Sequence[Block]
    ) -> None:
        for manager in self.single_type_managers:
            manager.add_local_computed_blocks(request_id, new_computed_blocks)

    def allocate_new_blocks(self, request_id: str, num_tokens: int) -> list[list[Block]]:
        return [
            manager.allocate_new_blocks(request_id, num_tokens)
            for manager in self.single_type_managers
        ]

    def cache_blocks(self, request: Any, num_computed_tokens: int) -> None:
        for manager in self.single_type_managers:
            manager.cache_blocks(request, num_computed_tokens)

    def free(self, request_id: str) -> None:
        for manager in self.single_type_managers:
            manager.free(request_id)


class KVCacheManager:
    def __init__(self, num_blocks: int, block_size: int, *, caches: bool) -> None:
        self.block_size, self.enable_caching, self.watermark_blocks = block_size, caches, 0
        self.block_pool = BlockPool(num_blocks + 1, enable_caching=caches)
        self.coordinator = KVCacheCoordinator(self.block_pool, block_size)

    def get_computed_blocks(self, request: Any) -> tuple[list[Block], int]:
        found: list[Block] = []
        of_hash = {block.block_hash: block for block in self.block_pool.blocks if block.block_hash}
        for content in request.contents if self.enable_caching else ():
            if content not in of_hash:
                break
            found.append(of_hash[content])
        most = (request.num_tokens - 1) // self.block_size
        return found[:most], len(found[:most]) * self.block_size

    def allocate_slots(
        self, request: Any, num_new_tokens: int, num_new_computed_tokens: int = 0,
        new_computed_blocks: Sequence[Block] = (), num_lookahead_tokens: int = 0,
        full_sequence_must_fit: bool = False, reserved_blocks: int = 0,
        has_scheduled_reqs: bool = True,
    ) -> Any:  # fmt: skip
        total = request.num_computed_tokens + num_new_computed_tokens + num_new_tokens
        num_needed = self.coordinator.get_num_blocks_to_allocate(
            request_id=request.request_id, num_tokens=total + num_lookahead_tokens,
            new_computed_blocks=new_computed_blocks,
        )  # fmt: skip
        is_new = request.status.name != "RUNNING" and has_scheduled_reqs
        watermark = self.watermark_blocks if is_new else 0
        if num_needed + watermark > self.block_pool.get_num_free_blocks() - reserved_blocks:
            return None
        if new_computed_blocks:
            self.coordinator.allocate_new_computed_blocks(
                request_id=request.request_id, new_computed_blocks=new_computed_blocks
            )
        new = self.coordinator.allocate_new_blocks(request.request_id, total)
        if self.enable_caching:
            self.coordinator.cache_blocks(request, min(total, request.num_tokens))
        return SimpleNamespace(blocks=new)

    def free(self, request: Any) -> None:
        self.coordinator.free(request.request_id)

    def get_block_ids(self, request_id: str) -> tuple[list[int], ...]:
        return tuple(
            [block.block_id for block in manager.req_to_blocks.get(request_id, ())]
            for manager in self.coordinator.single_type_managers
        )
