"""The compressed history: blocks of `ratio` tokens, each pooled into one key and one value.

A block exists once all its tokens are computed, and a token sees those that ended by its own
position, `min((position + 1) // ratio, committed)`. The second bound alone will not do: `committed`
counts the blocks at the end of the *chunk*, so a token would see some of its own future, and how
much of it would depend on where the chunk happens to end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from stepscope.engine.model.layers.partials import Partial, attend

if TYPE_CHECKING:
    from stepscope.engine.model.cache.kv_cache import KVCache


def attend_compressed(
    query: Tensor,
    positions: Tensor,
    kv_slots: Tensor,
    cache: KVCache,
    layer: int,
    *,
    ratio: int,
    num_pooled: int | None = None,
    by_chunk_end: bool = False,
) -> Partial:
    """Attend from a row's T tokens, [T, H, D], to the blocks of its history.

    `kv_slots` are the cache's slots of all its tokens, these included. They make `num_pooled`
    blocks, as a plan has it, or as many as they fill; `by_chunk_end` is the fault.
    """
    committed = len(kv_slots) // ratio if num_pooled is None else num_pooled
    key, value = cache.read(layer, kv_slots[: committed * ratio])
    pooled_key, pooled_value = (
        each.view(committed, ratio, *each.shape[1:]).mean(1) for each in (key, value)
    )
    num_visible = ((positions + 1) // ratio).clamp(max=committed)
    if by_chunk_end:
        num_visible = torch.full_like(positions, committed)
    blocks = torch.arange(committed, device=query.device)
    return attend(query, pooled_key, pooled_value, blocks < num_visible[:, None])
