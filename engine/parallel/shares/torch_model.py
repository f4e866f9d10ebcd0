"""A rank's model with torch."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from stepscope.engine.model.cache.inputs import ModelInput
from stepscope.engine.model.cache.kv_cache import KVCache
from stepscope.engine.model.cache.row_tokens import RowTokens
from stepscope.engine.model.decoder import Decoder
from stepscope.engine.model.layers.moe import LocalExperts, MoE
from stepscope.engine.model.numpy_decoder import Array, RunExperts
from stepscope.engine.parallel.costs import FUSED, GROUPED, PER_TOKEN
from stepscope.engine.parallel.shares.rank_model import model_config, weights_of


def decoder_of(seed: int) -> Decoder:
    """Return the model that every rank has, with the weights that the plain one has too."""
    decoder = Decoder(model_config(seed))
    decoder.load_state_dict({name: torch.from_numpy(w) for name, w in weights_of(seed).items()})
    return decoder


class TorchModel:
    """The decoder with torch, with the experts `owned`, and `num_slots` slots."""

    def __init__(self, seed: int, num_slots: int, slot_tokens: int, owned: Collection[int]) -> None:
        self._decoder = decoder_of(seed)
        self._cache = KVCache(self._decoder.config, num_slots, slot_tokens)
        self._slot_tokens = slot_tokens
        self._owned = owned
        self._layers = self._decoder.moe_layers
        self._local = LocalExperts(self._layers, owned)

    def forward(self, rows: Sequence[RowTokens], experts: RunExperts, *, is_prefill: bool) -> Array:
        """Return the last hidden states of all rows' tokens, [T, hidden_size]."""
        self._decoder.experts = _Everywhere(experts)
        given = ModelInput.of(self._cache, rows, is_prefill=is_prefill)
        hidden: Array = self._decoder(given, self._cache).numpy()
        return hidden

    def logits(self, hidden: Array) -> Array:
        """Return the logits, [rows, vocab_size], of hidden states."""
        logits: Array = self._decoder.logits(torch.from_numpy(hidden)).numpy()
        return logits

    @torch.inference_mode()
    def run_path(self, path: str, layer: int, hidden: Array) -> Array:
        """Return the owned experts' part of what a layer's experts make of tokens."""
        given, moe = torch.from_numpy(hidden), self._layers[layer]
        if path == PER_TOKEN:
            made = self._local.run(layer, given)
        else:
            made = {FUSED: self._fused, GROUPED: self._grouped}[path](moe, given)
        out: Array = made.numpy()
        return out

    def forget(self, slot: int) -> None:
        """Forget the recurrent state of a slot."""
        self._cache.memory.forget(slot)

    def take_back(self, slot: int, num_tokens: int) -> None:
        """Put the recurrent state of a slot back by some tokens of the last pass."""
        self._cache.memory.take_back(slot, num_tokens)

    def move(self, source: int, target: int) -> None:
        """Let slot `target` hold what `source` holds."""
        whole = [self._cache.slots([slot], self._slot_tokens) for slot in (source, target)]
        for layer in range(self._decoder.config.num_layers):
            self._cache.write(layer, whole[1], *self._cache.read(layer, whole[0]))
        self._cache.memory.move(source, target)

    def _fused(self, moe: MoE, hidden: Tensor) -> Tensor:
        """Run every expert that some row chose over all rows; who did not choose it weighs 0."""
        chosen, weights = moe.route(hidden)
        out = torch.zeros_like(hidden)
        for number in self._owned:
            share = (weights * (chosen == number)).sum(-1, keepdim=True)
            if bool(share.any()):
                out += share * moe.experts[number](hidden)
        return out

    def _grouped(self, moe: MoE, hidden: Tensor) -> Tensor:
        """Sort the tokens by expert, run each expert over its own, and put them back in order."""
        chosen, weights = moe.route(hidden)
        order = chosen.flatten().argsort(stable=True)
        tokens = order // chosen.shape[1]
        sizes = chosen.flatten().bincount(minlength=len(moe.experts)).tolist()
        sorted_hidden, sorted_weights = hidden[tokens], weights.flatten()[order, None]
        out, first = torch.zeros_like(hidden), 0
        for number, size in enumerate(sizes):
            last = first + size
            if size and number in self._owned:
                made = sorted_weights[first:last] * moe.experts[number](sorted_hidden[first:last])
                out.index_add_(0, tokens[first:last], made)
            first = last
        return out


class _Everywhere:
    """The experts of all ranks, to the decoder."""

    def __init__(self, run: RunExperts) -> None:
        self._run = run

    def run(self, layer: int, hidden: Tensor) -> Tensor:
        return torch.from_numpy(self._run(layer, hidden.numpy()))
