"""The pool of KV blocks that requests are computed into."""

from __future__ import annotations

from collections import deque


class KVBlocks:
    """`num_blocks` blocks of `block_size` tokens, each free or owned by one request.

    Blocks are handed out in the order in which they became free. An engine whose KV is not paged
    has a pool of no blocks, in which nobody lacks any.
    """

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.owner: dict[int, str] = {}
        self.generation = [0] * num_blocks
        self._free = deque(range(num_blocks))

    @property
    def num_free(self) -> int:
        """Blocks that nobody owns."""
        return len(self._free)

    def num_blocks_for(self, num_tokens: int) -> int:
        """Return how many blocks hold `num_tokens` tokens."""
        return -(-num_tokens // self.block_size)

    def num_missing(self, block_table: list[int], num_tokens: int) -> int:
        """Return how many blocks `block_table` lacks to hold `num_tokens` tokens."""
        if not self.num_blocks:
            return 0
        return max(0, -(-num_tokens // self.block_size) - len(block_table))

    def claim(self, request_id: str) -> tuple[int, int]:
        """Give a free block to a request; return it and how often it had been claimed before."""
        block = self._free.popleft()
        generation = self.generation[block]
        self.generation[block] = generation + 1
        self.owner[block] = request_id
        return block, generation

    def release(self, block: int) -> int:
        """Take a block back; return how often it had been claimed before this owner."""
        del self.owner[block]
        self._free.append(block)
        return self.generation[block] - 1
