"""What one forward pass takes: the tokens of some rows, laid out one row after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from stepscope.engine.model.cache.kv_cache import KVCache
from stepscope.engine.model.cache.row_tokens import RowTokens


@dataclass(frozen=True, slots=True)
class ModelInput:
    """R rows with T tokens together; all rows are prompts, or none is.

    `input_ids`, `positions` and `slot_mapping`, where a token's KV goes, are [T]; row i has the
    tokens `cu_lens[i]` to `cu_lens[i + 1]`. `kv_slots` holds for each row the slots of all tokens
    that its last one sees, oldest first, itself included. Of a history that is compressed by a
    ratio row i sees `num_pooled[ratio][i]` blocks; of one that has no plan, all that there are.
    `slots` is each row's first block, by which recurrent layers know it.
    """

    input_ids: Tensor
    positions: Tensor
    slot_mapping: Tensor
    cu_lens: Sequence[int]
    kv_slots: Sequence[Tensor]
    is_prefill: bool
    num_pooled: Mapping[int, Sequence[int]] | None = None
    slots: Sequence[int] = ()

    @classmethod
    def of(cls, cache: KVCache, rows: Sequence[RowTokens], *, is_prefill: bool) -> ModelInput:
        """Lay `rows` out, whose blocks are blocks of `cache`."""
        kv_slots = [cache.slots(row.block_table, row.first + len(row.tokens)) for row in rows]
        positions = [torch.arange(row.first, row.first + len(row.tokens)) for row in rows]
        input_ids = torch.tensor([token for row in rows for token in row.tokens])
        return cls(
            input_ids.to(cache.device),
            torch.cat(positions).to(cache.device),
            torch.cat([slots[row.first :] for row, slots in zip(rows, kv_slots, strict=True)]),
            [0, *accumulate(len(row.tokens) for row in rows)],
            kv_slots,
            is_prefill,
            slots=[row.block_table[0] for row in rows],
        )
