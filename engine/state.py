"""What the engine holds at a moment: queues, pools, and the batch being formed."""

from __future__ import annotations

from collections import deque
from typing import Any

from stepscope.engine.batch import Batch
from stepscope.engine.config import EngineConfig
from stepscope.engine.memory.kv_blocks import KVBlocks
from stepscope.engine.memory.slots import Slots
from stepscope.engine.requests.content import block_hashes
from stepscope.engine.requests.request import Request


class State:
    """The queues and pools; a policy reads them, the engine alone changes them.

    `waiting` is in the order in which it is served, `running` in the order of admission.
    `was_full` says that somebody lacked a running slot and nobody has left since, `prefilled_step`
    which step was the last one with a prompt, `num_prefills` how many in a row had one until now.
    """

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.step = 1
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.batch = Batch()
        self.was_full = False
        self.prefilled_step = 0
        self.num_prefills = 0
        self.kv_blocks = KVBlocks(config.num_kv_blocks, config.block_size)
        self.slots = Slots(config.num_slots) if config.num_slots else None

    @property
    def num_requests(self) -> int:
        """Requests that wait or run."""
        return len(self.waiting) + len(self.running)

    @property
    def num_free_running_slots(self) -> int:
        """How many requests more may run: as many as have a slot, where the engine has slots."""
        num_left = self.config.max_num_seqs - len(self.running)
        return min(num_left, self.slots.num_free) if self.slots else num_left

    def num_missing_blocks(self, request: Request, num_tokens: int) -> int:
        """Return how many blocks more `request` needs to hold `num_tokens` tokens."""
        return self.kv_blocks.num_missing(request.block_table, num_tokens)

    def block_hashes(self, request: Request) -> list[int]:
        """Return a hash for each block that the prompt of `request` fills."""
        if request.block_hashes is None:
            request.block_hashes = block_hashes(request, self.config.block_size)
        return request.block_hashes

    def cached_prefix(self, request: Request) -> list[int]:
        """Return the blocks that hold the beginning of `request`, but for its prompt's last token.

        Something has to be computed for it, or there would be nothing to sample from; and whoever
        was preempted comes back as a prompt, whatever is left of it.
        """
        if not self.config.prefix_cache:
            return []
        most = (request.prompt_len - 1) // self.config.block_size
        return self.kv_blocks.cached(self.block_hashes(request)[:most])

    def num_blocks_to_admit(self, request: Request) -> int:
        """Return how many free blocks it takes to hold all tokens of a waiting request."""
        cached = self.cached_prefix(request)
        num_in_use = sum(self.kv_blocks.num_references(block) > 0 for block in cached)
        return self.num_missing_blocks(request, request.num_tokens) - num_in_use

    def snapshot(self, ts_ns: int) -> dict[str, Any]:
        """Return the state as plain lists and dicts; only the pools that the engine has."""
        snapshot: dict[str, Any] = {
            "ts_ns": ts_ns,
            "step": self.step,
            "waiting": [request.id for request in self.waiting],
            "running": [request.id for request in self.running],
            "batch": [[row.request.id, row.phase, row.num_tokens] for row in self.batch.rows],
        }
        if self.kv_blocks.num_blocks:
            snapshot["kv_blocks"] = dict(self.kv_blocks.owner)
        if self.slots:
            snapshot["slots"] = dict(self.slots.owner)
        return snapshot
