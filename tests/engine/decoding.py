"""Small decoders for tests, and prompts sent through them in whatever pieces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any

import torch
from torch import Tensor

from stepscope.engine.model.cache.inputs import ModelInput
from stepscope.engine.model.cache.kv_cache import KVCache
from stepscope.engine.model.cache.row_tokens import RowTokens
from stepscope.engine.model.decoder import Decoder
from stepscope.engine.model.decoder_config import ModelConfig

TINY: dict[str, Any] = {"vocab_size": 64, "hidden_size": 16, "intermediate_size": 24}
DENSE = ModelConfig(**TINY, chunk_tokens=4)
MOE = ModelConfig(**TINY, chunk_tokens=4, num_experts=4)
COMPRESSED = ModelConfig(**TINY, chunk_tokens=4, window=6, ratios=(3,))
CONFIGS = (DENSE, MOE, COMPRESSED)
CLOSE = 1e-10
torch.set_num_threads(1)


@cache
def decoder(config: ModelConfig, *faults: str) -> Decoder:
    """The decoder of `config`, made once."""
    return Decoder(config, frozenset(faults))


def prompt(num_tokens: int, seed: int = 0, vocab_size: int = 64) -> list[int]:
    """Token ids of which none is the end."""
    random = Random(seed)
    return [random.randrange(3, vocab_size) for _ in range(num_tokens)]


def chunked(model: Decoder, tokens: Sequence[int], sizes: Sequence[int], beside: int = 0) -> Tensor:
    """Logits of every token, computed in chunks of these sizes beside a row with a longer history.

    The blocks of the row lie apart and out of order; `beside` is the length of its neighbour's
    history, 0 for no neighbour.
    """
    kv = KVCache(model.config, 64, 4)
    table, neighbour = list(range(31, 0, -2)), list(range(0, 32, 2))
    if beside:
        others = [RowTokens(prompt(beside, 9), 0, neighbour)]
        model(ModelInput.of(kv, others, is_prefill=True), kv)
    logits, done = [], 0
    for size in sizes:
        rows = [RowTokens(tokens[done : done + size], done, table)]
        if beside:
            rows.append(RowTokens([7], beside, neighbour))
        hidden = model(ModelInput.of(kv, rows, is_prefill=True), kv)
        logits.append(model.logits(hidden[:size]))
        done += size
    return torch.cat(logits)
