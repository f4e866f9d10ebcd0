"""The decoder: embedding, layers, and logits of the tokens that are asked for."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from stepscope.engine.model.cache.inputs import ModelInput
from stepscope.engine.model.cache.kv_cache import KVCache
from stepscope.engine.model.decoder_config import ModelConfig
from stepscope.engine.model.dtype import DTYPE
from stepscope.engine.model.layers.attention import Attention
from stepscope.engine.model.layers.moe import Experts, LocalExperts, MoE
from stepscope.engine.model.layers.recurrent import Recurrent
from stepscope.engine.model.layers.tokenwise import RMSNorm, SwiGLU, linear


class DecoderLayer(nn.Module):
    """Attention or a recurrent state, then an MLP or experts.

    Each works on a normalised copy, and is added to what came in.
    """

    def __init__(self, config: ModelConfig, layer: int, faults: frozenset[str]) -> None:
        super().__init__()
        self.layer = layer
        self.mixer_norm = RMSNorm(config.hidden_size, config.norm_eps)
        is_recurrent = layer < config.num_recurrent
        self.mixer = Recurrent(config, layer) if is_recurrent else Attention(config, layer, faults)
        self.mlp_norm = RMSNorm(config.hidden_size, config.norm_eps)
        self.mlp = MoE(config) if config.num_experts else SwiGLU(config)

    def forward(
        self, hidden: Tensor, given: ModelInput, cache: KVCache, experts: Experts | None
    ) -> Tensor:
        """Return the tokens, [T, hidden_size], one layer further."""
        hidden = hidden + self.mixer(self.mixer_norm(hidden), given, cache)
        return hidden + self.feed_forward(hidden, experts)

    def feed_forward(self, hidden: Tensor, experts: Experts | None) -> Tensor:
        """Return what the MLP, or the experts, add to the tokens."""
        normed = self.mlp_norm(hidden)
        out: Tensor = experts.run(self.layer, normed) if experts else self.mlp(normed)
        return out


class Decoder(nn.Module):
    """A decoder with the weights of `config.seed`.

    `experts` computes its experts, where it has any: all of them here, until somebody sets it to
    another that shares the work with other ranks. `layers[i].mlp` has the weights.
    """

    experts: Experts | None

    def __init__(self, config: ModelConfig, faults: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size, dtype=DTYPE)
        self.layers = nn.ModuleList(
            DecoderLayer(config, layer, faults) for layer in range(config.num_layers)
        )
        self.norm = RMSNorm(config.hidden_size, config.norm_eps)
        self.head = linear(config.hidden_size, config.vocab_size)
        self.experts = LocalExperts(self.moe_layers) if config.num_experts else None
        _draw_weights(self, config.seed)

    @property
    def moe_layers(self) -> list[MoE]:
        """The routers and experts of its layers; none where the MLP is dense."""
        mlps = (layer.mlp for layer in self.layers)
        return [mlp for mlp in mlps if isinstance(mlp, MoE)]

    @torch.inference_mode()
    def forward(self, given: ModelInput, cache: KVCache) -> Tensor:
        """Write the tokens' KV to `cache`; return their last hidden states, [T, hidden_size]."""
        hidden = self.embedding(given.input_ids)
        for layer in self.layers:
            hidden = layer(hidden, given, cache, self.experts)
        out: Tensor = self.norm(hidden)
        return out

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Return the logits, [rows, vocab_size], of hidden states, [rows, hidden_size]."""
        out: Tensor = self.head(hidden)
        return out


def _draw_weights(decoder: Decoder, seed: int) -> None:
    """Draw every matrix so that what goes through it keeps its size.

    Queries and keys are larger, which makes attention choose: with small ones it looks at all
    tokens alike, and the output hardly depends on their order.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, weight in decoder.named_parameters():
        if weight.dim() < 2:
            continue
        sharpness = 3.0 if name.endswith(("query.weight", "key.weight")) else 1.0
        scale = 1.0 if name == "embedding.weight" else sharpness * weight.shape[1] ** -0.5
        with torch.no_grad():
            weight.normal_(0.0, scale, generator=generator)
