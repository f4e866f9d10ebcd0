"""Blocks and slots change hands here, and nowhere else."""

from __future__ import annotations

from stepscope.engine.plan import PlanRefused
from stepscope.engine.requests.request import Request
from stepscope.engine.serving.recording import Recording
from stepscope.engine.state import State


class Allocator:
    """Gives requests the blocks and slots that they need, takes them back, and notes both."""

    def __init__(self, state: State, record: Recording | None) -> None:
        self._state = state
        self._blocks = state.kv_blocks
        self._record = record
        self._frees_again = "block-given-twice" in state.config.faults
        self._went_back: dict[str, int] = {}

    def share_prefix(self, request: Request) -> None:
        """Give `request` the blocks that already hold the beginning of what it says."""
        for block in self._state.cached_prefix(request):
            generation = self._blocks.share(block, request.id)
            request.block_table.append(block)
            self._note("kv-block", block, "share", request, generation)
        request.num_cached = len(request.block_table) * self._blocks.block_size
        request.num_computed = request.num_cached

    def claim_blocks(self, request: Request, num_tokens: int) -> None:
        """Give `request` the blocks that it lacks to hold `num_tokens` tokens."""
        num_missing = self._state.num_missing_blocks(request, num_tokens)
        if num_missing > self._blocks.num_free:
            raise PlanRefused(f"{request.id} lacks {num_missing} KV blocks and fewer are free")
        for _ in range(num_missing):
            block, generation = self._blocks.claim(request.id)
            request.block_table.append(block)
            self._note("kv-block", block, "claim", request, generation)

    def cache_prefix(self, request: Request, first: int, last: int) -> None:
        """Let others share the blocks of the prompt that are full with `first` to `last` tokens."""
        size, hashes = self._blocks.block_size, self._state.block_hashes(request)
        for place in range(first // size, min(last // size, len(hashes))):
            self._blocks.cache(request.block_table[place], hashes[place])

    def claim_slot(self, request: Request) -> None:
        """Give `request` a slot, where the engine has slots."""
        if not self._state.slots:
            return
        if not self._state.slots.num_free:
            raise PlanRefused(f"{request.id} needs a slot and none is free")
        request.slot, generation = self._state.slots.claim(request.id)
        self._note("slot", request.slot, "claim", request, generation)

    def release(self, request: Request) -> None:
        """Take all that `request` holds; of a cached prefix the end is the first to be reused."""
        if self._frees_again:
            self._free_again(request)
        is_cached = self._state.config.prefix_cache
        for block in reversed(request.block_table) if is_cached else request.block_table:
            generation = self._blocks.release(block, request.id)
            self._note("kv-block", block, "release", request, generation)
        request.block_table.clear()
        if self._state.slots and request.slot is not None:
            generation = self._state.slots.release(request.slot)
            self._note("slot", request.slot, "release", request, generation)
            request.slot = None

    def _free_again(self, request: Request) -> None:
        """Free the last block that went back when `request` was preempted; it may have an owner."""
        if request.id in self._went_back:
            self._blocks.free_again(self._went_back.pop(request.id))
        if request.block_table:
            self._went_back[request.id] = request.block_table[-1]

    def _note(self, resource: str, number: int, op: str, request: Request, generation: int) -> None:
        if self._record:
            self._record.allocation(resource, number, op, request, generation)
