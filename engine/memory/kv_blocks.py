"""The pool of KV blocks that requests are computed into, and what they leave behind in it."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable


class KVBlocks:
    """`num_blocks` blocks of `block_size` tokens, each free or owned by the requests that use it.

    Blocks are handed out in the order in which they became free. An engine whose KV is not paged
    has a pool of no blocks, in which nobody lacks any.

    A block whose contents got a hash can be shared: it is owned by its first user, and by the next
    when that one lets go. Free blocks keep their contents until they are handed out again, which
    comes after those without, the least recently used first.
    """

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.owner: dict[int, str] = {}
        self.generation = [0] * num_blocks
        self._free = deque(range(num_blocks))
        self._free_cached: OrderedDict[int, None] = OrderedDict()
        self._sharers: dict[int, list[str]] = {}
        self._block_of: dict[int, int] = {}
        self._hash_of: dict[int, int] = {}

    @property
    def num_free(self) -> int:
        """Blocks that nobody owns."""
        return len(self._free) + len(self._free_cached)

    def num_blocks_for(self, num_tokens: int) -> int:
        """Return how many blocks hold `num_tokens` tokens."""
        return -(-num_tokens // self.block_size)

    def num_missing(self, block_table: list[int], num_tokens: int) -> int:
        """Return how many blocks `block_table` lacks to hold `num_tokens` tokens."""
        if not self.num_blocks:
            return 0
        return max(0, -(-num_tokens // self.block_size) - len(block_table))

    def num_references(self, block: int) -> int:
        """Return how many requests use a block."""
        return (block in self.owner) + len(self._sharers.get(block, ()))

    def claim(self, request_id: str) -> tuple[int, int]:
        """Give a free block to a request; return it and how often it had been claimed before."""
        block = self._free.popleft() if self._free else self._evicted()
        generation = self.generation[block]
        self.generation[block] = generation + 1
        if block in self.owner:  # it was freed once too often
            self._sharers.setdefault(block, []).append(self.owner[block])
        self.owner[block] = request_id
        return block, generation

    def share(self, block: int, request_id: str) -> int:
        """Let a request use a cached block too; return how often it had been claimed before."""
        if block in self.owner:
            self._sharers.setdefault(block, []).append(request_id)
        else:
            del self._free_cached[block]
            self.owner[block] = request_id
        return self.generation[block] - 1

    def release(self, block: int, request_id: str) -> int:
        """Take a block back from a request; return how often it had been claimed before."""
        sharers = self._sharers.get(block)
        if sharers and self.owner[block] != request_id:
            sharers.remove(request_id)
        elif sharers:
            self.owner[block] = sharers.pop(0)
        else:
            self._free_up(block)
        if sharers is not None and not sharers:
            del self._sharers[block]
        return self.generation[block] - 1

    def free_again(self, block: int) -> None:
        """Count a reference down once too often: whoever has the block, it is handed out again."""
        self._free.append(block)

    def cache(self, block: int, content: int) -> None:
        """Remember what a block holds, by the hash of it and of all before it."""
        if content not in self._block_of and block not in self._hash_of:
            self._block_of[content] = block
            self._hash_of[block] = content

    def cached(self, contents: Iterable[int]) -> list[int]:
        """Return the blocks that hold `contents`, up to the first that none does."""
        blocks: list[int] = []
        for content in contents:
            if content not in self._block_of:
                break
            blocks.append(self._block_of[content])
        return blocks

    def _free_up(self, block: int) -> None:
        del self.owner[block]
        if block in self._hash_of:
            self._free_cached[block] = None
        else:
            self._free.append(block)

    def _evicted(self) -> int:
        block, _ = self._free_cached.popitem(last=False)
        del self._block_of[self._hash_of.pop(block)]
        return block
