"""A layer that remembers a sequence in one state of fixed size, instead of looking back at it.

Each token gates how much of the state it writes over with what it says itself (minGRU: Feng et al.,
https://arxiv.org/abs/2410.01201). The state belongs to one sequence, so that rows of a batch go
through it one by one; linear attention and state-space models (SSM) are of the same kind.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from stepscope.engine.model.cache.inputs import ModelInput
from stepscope.engine.model.cache.kv_cache import KVCache
from stepscope.engine.model.decoder_config import ModelConfig
from stepscope.engine.model.layers.tokenwise import linear


class Recurrent(nn.Module):
    """The mixer of layer `layer`; what it remembers is in the cache, by slot."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        width = config.hidden_size
        self.layer = layer
        self.gate, self.candidate, self.output = (linear(width, width) for _ in range(3))

    def forward(self, hidden: Tensor, given: ModelInput, cache: KVCache) -> Tensor:
        """Take each row's tokens into its slot's state; return what is said of it, [T, hidden]."""
        cuts = map(slice, given.cu_lens, given.cu_lens[1:])
        told = []
        for cut, slot in zip(cuts, given.slots, strict=True):
            states = self.states(hidden[cut], cache.memory.last(self.layer, slot))
            cache.memory.remember(self.layer, slot, states.unbind())
            told.append(states)
        out: Tensor = self.output(torch.cat(told))
        return out

    def states(self, hidden: Tensor, before: Tensor) -> Tensor:
        """Return the state after each token, [T, hidden_size], from the one before them."""
        gate, candidate = torch.sigmoid(self.gate(hidden)), self.candidate(hidden)
        states = []
        for weight, new in zip(gate, candidate, strict=True):
            before = (1 - weight) * before + weight * new
            states.append(before)
        return torch.stack(states)
