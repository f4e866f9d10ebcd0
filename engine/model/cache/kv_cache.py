"""Keys and values of all requests, in blocks: a request finds its own through its block table."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from stepscope.engine.model.cache.memory import Memory
from stepscope.engine.model.decoder_config import ModelConfig
from stepscope.engine.model.dtype import DTYPE


class KVCache:
    """`num_blocks` blocks of `block_size` tokens; token i of block b is in slot b * size + i.

    An engine whose KV is not paged has a block for each of its slots, as long as a request may be.
    `memory` is what recurrent layers remember of each block, where a block is a slot.
    All of it is NaN at first, or `fill`: who reads what nobody wrote does not go unnoticed.
    """

    def __init__(
        self,
        config: ModelConfig,
        num_blocks: int,
        block_size: int,
        device: str = "cpu",
        fill: float = torch.nan,
    ) -> None:
        self.block_size = block_size
        self.device = device
        shape = (config.num_layers, num_blocks * block_size, config.num_kv_heads, config.head_dim)
        self._keys, self._values = (
            torch.full(shape, fill, dtype=DTYPE, device=device) for _ in range(2)
        )
        self.memory = Memory(torch.zeros(config.hidden_size, dtype=DTYPE, device=device))

    def slots(self, block_table: Sequence[int], num_tokens: int) -> Tensor:
        """Return the slots of the first `num_tokens` tokens of a request, [num_tokens]."""
        size = self.block_size
        slots = [block * size + offset for block in block_table for offset in range(size)]
        return torch.tensor(slots[:num_tokens], dtype=torch.int64, device=self.device)

    def write(self, layer: int, slots: Tensor, key: Tensor, value: Tensor) -> None:
        """Put keys and values, [tokens, KV heads, head_dim], into their slots."""
        self._keys[layer, slots] = key
        self._values[layer, slots] = value

    def read(self, layer: int, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values of `slots`, each [slots, KV heads, head_dim]."""
        return self._keys[layer, slots], self._values[layer, slots]

    def copy_from(self, other: KVCache) -> None:
        """Become equal to a cache of the same shape, on whatever device it is."""
        self._keys.copy_(other._keys)
        self._values.copy_(other._values)
