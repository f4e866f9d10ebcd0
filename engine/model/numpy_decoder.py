"""The decoder once more, in NumPy, for where there is no torch.

It has the parts of `decoder.py` under the same names, and computes the same in float64, so that
with the same weights both say the same: `tests/engine/model/test_numpy_decoder.py` holds one
against the other. It knows slots, each as long as a request may be, and no pages; a row of a batch
goes through attention and recurrent layers by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from stepscope.engine.model.cache.memory import Memory
from stepscope.engine.model.cache.row_tokens import RowTokens
from stepscope.engine.model.decoder_config import ModelConfig

Array = NDArray[np.float64]
Weights = Mapping[str, Array]
RunExperts = Callable[[int, Array], Array]  # layer, [tokens, hidden_size]: the same, through them
SHARP = ("query.weight", "key.weight")


def draw_weights(config: ModelConfig) -> dict[str, Array]:
    """Return the weights of `config.seed` by the names that `Decoder` has for them.

    Every matrix keeps the size of what goes through it; queries and keys are larger, which makes
    attention choose.
    """
    drawn = np.random.default_rng(config.seed)
    weights: dict[str, Array] = {}
    for name, shape in _shapes(config):
        scale = 1.0 if name == "embedding.weight" else shape[-1] ** -0.5
        scale *= 3.0 if name.endswith(SHARP) else 1.0
        is_vector = len(shape) == 1
        weights[name] = np.ones(shape) if is_vector else scale * drawn.standard_normal(shape)
    return weights


def _shapes(config: ModelConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    width, kv_width = config.hidden_size, config.num_kv_heads * config.head_dim
    yield "embedding.weight", (config.vocab_size, width)
    for layer in range(config.num_layers):
        at = f"layers.{layer}"
        names = {"query": width, "key": kv_width, "value": kv_width, "output": width}
        if layer < config.num_recurrent:
            names = {"gate": width, "candidate": width, "output": width}
        yield f"{at}.mixer_norm.weight", (width,)
        yield from ((f"{at}.mixer.{name}.weight", (out, width)) for name, out in names.items())
        yield f"{at}.mlp_norm.weight", (width,)
        yield f"{at}.mlp.router.weight", (config.num_experts, width)
        for number in range(config.num_experts):
            expert, inner = f"{at}.mlp.experts.{number}", config.intermediate_size
            yield f"{expert}.gate.weight", (inner, width)
            yield f"{expert}.up.weight", (inner, width)
            yield f"{expert}.down.weight", (width, inner)
    yield "norm.weight", (width,)
    yield "head.weight", (config.vocab_size, width)


class PlainDecoder:
    """A decoder with experts, and the KV and recurrent states of `num_slots` slots."""

    def __init__(
        self, config: ModelConfig, weights: Weights, num_slots: int, slot_tokens: int
    ) -> None:
        self.config = config
        self._weights = weights
        shape = (config.num_layers, num_slots, slot_tokens, config.num_kv_heads, config.head_dim)
        # Who reads what nobody wrote does not go unnoticed.
        self._keys, self._values = np.full(shape, np.nan), np.full(shape, np.nan)
        self.memory = Memory(np.zeros(config.hidden_size))

    def forward(self, rows: Sequence[RowTokens], experts: RunExperts) -> Array:
        """Return the last hidden states of all rows' tokens, [T, hidden_size].

        A row's first block is its slot.
        """
        tokens = [token for row in rows for token in row.tokens]
        cuts = np.cumsum([len(row.tokens) for row in rows])[:-1]
        hidden = self._weights["embedding.weight"][tokens]
        for layer in range(self.config.num_layers):
            normed = np.split(self._normed(f"layers.{layer}.mixer_norm", hidden), cuts)
            mixer = self._recur if layer < self.config.num_recurrent else self._attend
            parts = [mixer(layer, row, each) for row, each in zip(rows, normed, strict=True)]
            hidden = hidden + np.concatenate(parts)
            hidden = hidden + experts(layer, self._normed(f"layers.{layer}.mlp_norm", hidden))
        return self._normed("norm", hidden)

    def logits(self, hidden: Array) -> Array:
        """Return the logits, [rows, vocab_size], of hidden states, [rows, hidden_size]."""
        return self._through("head", hidden)

    def route(self, layer: int, hidden: Array) -> tuple[NDArray[np.int64], Array]:
        """Return each token's experts and their weights, which add up to 1, both [tokens, k]."""
        scores = self._through(f"layers.{layer}.mlp.router", hidden)
        chosen = np.argsort(-scores, axis=-1, kind="stable")[:, : self.config.experts_per_token]
        return chosen, _softmax(np.take_along_axis(scores, chosen, axis=-1))

    def expert(self, layer: int, number: int, hidden: Array) -> Array:
        """Return what an expert makes of tokens, [tokens, hidden_size]."""
        at = f"layers.{layer}.mlp.experts.{number}"
        gate = self._through(f"{at}.gate", hidden)
        return self._through(
            f"{at}.down", gate * _sigmoid(gate) * self._through(f"{at}.up", hidden)
        )

    def move(self, source: int, target: int) -> None:
        """Let slot `target` hold what `source` holds."""
        for cached in (self._keys, self._values):
            cached[:, target] = cached[:, source]
        self.memory.move(source, target)

    def _recur(self, layer: int, row: RowTokens, hidden: Array) -> Array:
        at, slot = f"layers.{layer}.mixer", row.block_table[0]
        gate = _sigmoid(self._through(f"{at}.gate", hidden))
        candidate = self._through(f"{at}.candidate", hidden)
        state, states = self.memory.last(layer, slot), []
        for weight, new in zip(gate, candidate, strict=True):
            state = (1 - weight) * state + weight * new
            states.append(state)
        self.memory.remember(layer, slot, states)
        return self._through(f"{at}.output", np.stack(states))

    def _attend(self, layer: int, row: RowTokens, hidden: Array) -> Array:
        at, slot, config = f"layers.{layer}.mixer", row.block_table[0], self.config
        positions = np.arange(row.first, row.first + len(hidden))
        query, key, value = (
            self._through(f"{at}.{name}", hidden).reshape(len(hidden), -1, config.head_dim)
            for name in ("query", "key", "value")
        )
        end = row.first + len(hidden)
        self._keys[layer, slot, row.first : end] = self._turned(key, positions)
        self._values[layer, slot, row.first : end] = value
        keys, values = self._keys[layer, slot, :end], self._values[layer, slot, :end]
        is_hidden = np.arange(end) > positions[:, None]
        attended = _attention(self._turned(query, positions), keys, values, is_hidden)
        return self._through(f"{at}.output", attended.reshape(len(hidden), -1))

    def _turned(self, heads: Array, positions: NDArray[np.int64]) -> Array:
        half = self.config.head_dim // 2
        frequencies = self.config.rope_theta ** (-np.arange(half) / half)
        angles = positions[:, None, None] * frequencies
        cos, sin = np.cos(angles), np.sin(angles)
        first, second = heads[..., :half], heads[..., half:]
        return np.concatenate((first * cos - second * sin, second * cos + first * sin), axis=-1)

    def _through(self, name: str, hidden: Array) -> Array:
        out: Array = hidden @ self._weights[f"{name}.weight"].T
        return out

    def _normed(self, name: str, hidden: Array) -> Array:
        mean_square = np.square(hidden).mean(-1, keepdims=True)
        out: Array = hidden / np.sqrt(mean_square + self.config.norm_eps)
        return out * self._weights[f"{name}.weight"]


def _attention(query: Array, key: Array, value: Array, is_hidden: NDArray[np.bool_]) -> Array:
    """Attend from T tokens, [T, H, D], to K, [K, KV heads, D]; return [T, H, D]."""
    num_groups = query.shape[1] // key.shape[1]
    key, value = (each.repeat(num_groups, axis=1) for each in (key, value))
    scores = np.einsum("thd,khd->htk", query, key) * query.shape[-1] ** -0.5
    weights = _softmax(np.where(is_hidden, -np.inf, scores))
    out: Array = np.einsum("htk,khd->thd", weights, value)
    return out


def _softmax(scores: Array) -> Array:
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    out: Array = raised / raised.sum(-1, keepdims=True)
    return out


def _sigmoid(values: Array) -> Array:
    out: Array = 1 / (1 + np.exp(-values))
    return out
