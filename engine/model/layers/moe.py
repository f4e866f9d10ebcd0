"""A mixture of experts: a router sends each token to a few of many small MLPs.

What computes the experts is behind a Protocol. `LocalExperts` computes those that it owns and
leaves the others out; when the ranks of a group own each expert once, the sum of what they return
is what one rank with all of them returns, and that is the whole of expert parallelism.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from stepscope.engine.model.decoder_config import ModelConfig
from stepscope.engine.model.layers.tokenwise import SwiGLU, linear


class Experts(Protocol):
    """Computes the experts of every layer."""

    def run(self, layer: int, hidden: Tensor) -> Tensor:
        """Return what the experts of `layer` make of `hidden`, both [tokens, hidden_size]."""
        ...


class MoE(nn.Module):
    """The router and the experts of one layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.router = linear(config.hidden_size, config.num_experts)
        self.experts = nn.ModuleList(SwiGLU(config) for _ in range(config.num_experts))
        self.experts_per_token = config.experts_per_token

    def route(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return each token's experts and their weights, which add up to 1, both [tokens, k]."""
        scores, experts = torch.topk(self.router(hidden), self.experts_per_token, dim=-1)
        return experts, torch.softmax(scores, dim=-1)


class LocalExperts:
    """Computes the experts that it owns, of every layer; `owned` None is all of them."""

    def __init__(self, layers: Sequence[MoE], owned: Collection[int] | None = None) -> None:
        self._layers = layers
        self._owned = owned

    def run(self, layer: int, hidden: Tensor) -> Tensor:
        """Return the owned experts' part of what `layer` makes of `hidden`."""
        moe = self._layers[layer]
        experts, weights = moe.route(hidden)
        out = torch.zeros_like(hidden)
        for number, expert in enumerate(moe.experts):
            if self._owned is not None and number not in self._owned:
                continue
            tokens, places = torch.nonzero(experts == number, as_tuple=True)
            if len(tokens):
                out[tokens] += weights[tokens, places, None] * expert(hidden[tokens])
        return out
