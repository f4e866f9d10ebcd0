"""A rank's model in NumPy, and what it says to each request alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from stepscope.engine.model.cache.row_tokens import RowTokens
from stepscope.engine.model.numpy_decoder import Array, PlainDecoder, RunExperts
from stepscope.engine.model.sampler import digest, greedy, margin
from stepscope.engine.model.stream import Stream
from stepscope.engine.parallel.costs import FUSED, GROUPED, PER_TOKEN
from stepscope.engine.parallel.shares.rank_model import model_config, weights_of
from stepscope.engine.requests.request import EOS_TOKEN


class PlainModel:
    """The decoder in NumPy, with the experts `owned`, and `num_slots` slots."""

    def __init__(self, seed: int, num_slots: int, slot_tokens: int, owned: Collection[int]) -> None:
        self._decoder = PlainDecoder(model_config(seed), weights_of(seed), num_slots, slot_tokens)
        self._owned = owned
        self._paths = {FUSED: self._fused, GROUPED: self._grouped, PER_TOKEN: self._one_by_one}

    def forward(self, rows: Sequence[RowTokens], experts: RunExperts, *, is_prefill: bool) -> Array:
        """Return the last hidden states of all rows' tokens; prompts are no different."""
        del is_prefill
        return self._decoder.forward(rows, experts)

    def logits(self, hidden: Array) -> Array:
        """Return the logits, [rows, vocab_size], of hidden states."""
        return self._decoder.logits(hidden)

    def run_path(self, path: str, layer: int, hidden: Array) -> Array:
        """Return the owned experts' part of what a layer's experts make of tokens."""
        return self._paths[path](layer, hidden)

    def forget(self, slot: int) -> None:
        """Forget the recurrent state of a slot."""
        self._decoder.memory.forget(slot)

    def take_back(self, slot: int, num_tokens: int) -> None:
        """Put the recurrent state of a slot back by some tokens of the last pass."""
        self._decoder.memory.take_back(slot, num_tokens)

    def move(self, source: int, target: int) -> None:
        """Let slot `target` hold what `source` holds."""
        self._decoder.move(source, target)

    def _one_by_one(self, layer: int, hidden: Array) -> Array:
        """Take each token by itself through the experts that it chose."""
        out = np.zeros_like(hidden)
        for token, (experts, weights) in enumerate(
            zip(*self._decoder.route(layer, hidden), strict=True)
        ):
            for number, weight in zip(experts, weights, strict=True):
                if number in self._owned:
                    row = hidden[token : token + 1]
                    out[token] += weight * self._decoder.expert(layer, number, row)[0]
        return out

    def _fused(self, layer: int, hidden: Array) -> Array:
        """Run every expert that some row chose over all rows; who did not choose it weighs 0."""
        chosen, weights = self._decoder.route(layer, hidden)
        out = np.zeros_like(hidden)
        for number in self._owned:
            share = (weights * (chosen == number)).sum(-1, keepdims=True)
            if share.any():
                out += share * self._decoder.expert(layer, number, hidden)
        return out

    def _grouped(self, layer: int, hidden: Array) -> Array:
        """Sort the tokens by expert, run each expert over its own, and put them back in order."""
        chosen, weights = self._decoder.route(layer, hidden)
        order = chosen.ravel().argsort(kind="stable")
        tokens, out = order // chosen.shape[1], np.zeros_like(hidden)
        sizes = np.bincount(chosen.ravel(), minlength=self._decoder.config.num_experts)
        for number, last in enumerate(sizes.cumsum()):
            at = slice(last - sizes[number], last)
            if sizes[number] and number in self._owned:
                made = self._decoder.expert(layer, number, hidden[tokens[at]])
                np.add.at(out, tokens[at], weights.ravel()[order[at], None] * made)
        return out


def solo(
    seed: int,
    prompt: Sequence[int],
    max_tokens: int,
    eos_after: int | None = None,
    *,
    ends_at_eos: bool = False,
) -> Stream:
    """Return what the model answers to `prompt` alone: `max_tokens` tokens, or up to the end."""
    everything = PlainModel(
        seed, 1, len(prompt) + max_tokens, range(model_config(seed).num_experts)
    )
    tokens, digests, smallest, num_computed = list(prompt), [], np.inf, 0
    for number in range(1, min(max_tokens, eos_after or max_tokens) + 1):
        new = RowTokens(tokens[num_computed:], num_computed, [0])
        num_computed = len(tokens)
        hidden = everything.forward(
            [new], lambda layer, rows: everything.run_path(PER_TOKEN, layer, rows), is_prefill=True
        )
        logits = everything.logits(hidden[-1:])[0]
        tokens.append(greedy(logits, number, eos_after, ends_at_eos=ends_at_eos))
        digests.append(digest(logits))
        smallest = min(smallest, margin(logits))
        if ends_at_eos and tokens[-1] == EOS_TOKEN:
            break
    return Stream(tuple(tokens[len(prompt) :]), tuple(digests), float(smallest))
