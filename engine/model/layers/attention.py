"""Grouped-query attention over what is in the KV cache, chunk by chunk, and over the new tokens.

Rows of prompts attend to their *prefix*, the tokens that earlier steps computed, and to their
*suffix*, the tokens of this step, which are at hand and need not be read back. Rows of decodes read
all tokens from the cache, their own among them.

History is walked through in chunks, and all rows of a segment walk together: chunk c holds tokens
`c * chunk_tokens` onwards of *every* row. So a row with a short history, or none, meets chunks in
which it has no tokens, and merges nothing with nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from stepscope.engine.model.cache.inputs import ModelInput
from stepscope.engine.model.cache.kv_cache import KVCache
from stepscope.engine.model.decoder_config import ModelConfig
from stepscope.engine.model.layers.history import attend_compressed
from stepscope.engine.model.layers.partials import Partial, attend, merge
from stepscope.engine.model.layers.tokenwise import linear, rotate


class _Row(NamedTuple):
    """A row's new tokens, T of them, and the slots of all tokens that the last of them sees."""

    query: Tensor
    key: Tensor
    value: Tensor
    positions: Tensor
    kv_slots: Tensor
    num_pooled: int | None

    @property
    def num_prefix(self) -> int:
        return len(self.kv_slots) - len(self.query)

    def sees(self, first: int, last: int, window: int) -> Tensor:
        """Which of its tokens `first` to `last` each new token sees, [T, last - first]."""
        tokens = torch.arange(first, last, device=self.query.device)
        ends = torch.arange(self.num_prefix, len(self.kv_slots), device=self.query.device)[:, None]
        is_past = tokens <= ends
        return is_past & (tokens > ends - window) if window else is_past


class Attention(nn.Module):
    """Attention of layer `layer`; `faults` are those that `faults.py` names for it."""

    def __init__(self, config: ModelConfig, layer: int, faults: frozenset[str]) -> None:
        super().__init__()
        width, kv_width = config.hidden_size, config.num_kv_heads * config.head_dim
        self.config = config
        self.layer = layer
        self.query, self.output = linear(width, width), linear(width, width)
        self.key, self.value = linear(width, kv_width), linear(width, kv_width)
        self._ratio = config.ratio_of(layer)
        self._window = config.window if self._ratio else 0
        self._guards_empty = "empty-merge-nan" not in faults
        self._by_chunk_end = "history-seen-by-chunk-end" in faults

    def forward(self, hidden: Tensor, given: ModelInput, cache: KVCache) -> Tensor:
        """Write the new tokens' KV, and return what each of them attended to, [T, hidden_size]."""
        query, key, value = self.project(hidden, given.positions)
        cache.write(self.layer, given.slot_mapping, key, value)
        pooled: Sequence[int | None] = [None] * len(given.kv_slots)
        if given.num_pooled and self._ratio in given.num_pooled:
            pooled = given.num_pooled[self._ratio]
        cuts = zip(
            map(slice, given.cu_lens, given.cu_lens[1:]), given.kv_slots, pooled, strict=True
        )
        rows = [
            _Row(query[at], key[at], value[at], given.positions[at], slots, num_pooled)
            for at, slots, num_pooled in cuts
        ]
        merged = self._attend(rows, cache, is_prefill=given.is_prefill)
        attended = torch.cat([each.out.transpose(0, 1).flatten(1) for each in merged])
        out: Tensor = self.output(attended)
        return out

    def project(self, hidden: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, [T, heads, D], and keys and values, [T, KV heads, D], of the tokens."""
        config = self.config
        query = self.query(hidden).view(-1, config.num_heads, config.head_dim)
        key = self.key(hidden).view(-1, config.num_kv_heads, config.head_dim)
        value = self.value(hidden).view(-1, config.num_kv_heads, config.head_dim)
        theta = config.rope_theta
        return rotate(query, positions, theta), rotate(key, positions, theta), value

    def _attend(self, rows: list[_Row], cache: KVCache, *, is_prefill: bool) -> list[Partial]:
        ends = [row.num_prefix if is_prefill else len(row.kv_slots) for row in rows]
        merged = [Partial.of_nothing(row.query) for row in rows]
        for first in range(0, max(ends, default=0), self.config.chunk_tokens):
            last = first + self.config.chunk_tokens
            chunk = [
                self._attend_cached(row, first, max(first, min(last, end)), cache)
                for row, end in zip(rows, ends, strict=True)
            ]
            merged = [self._merge(*parts) for parts in zip(merged, chunk, strict=True)]
        if is_prefill:
            merged = [
                self._merge(one, self._attend_new(row))
                for one, row in zip(merged, rows, strict=True)
            ]
        if self._ratio:
            merged = [
                self._merge(one, self._attend_compressed(row, cache))
                for one, row in zip(merged, rows, strict=True)
            ]
        return merged

    def _attend_cached(self, row: _Row, first: int, last: int, cache: KVCache) -> Partial:
        key, value = cache.read(self.layer, row.kv_slots[first:last])
        return attend(row.query, key, value, row.sees(first, last, self._window))

    def _attend_new(self, row: _Row) -> Partial:
        is_visible = row.sees(row.num_prefix, len(row.kv_slots), self._window)
        return attend(row.query, row.key, row.value, is_visible)

    def _attend_compressed(self, row: _Row, cache: KVCache) -> Partial:
        return attend_compressed(
            row.query, row.positions, row.kv_slots, cache, self.layer,
            ratio=self._ratio, num_pooled=row.num_pooled, by_chunk_end=self._by_chunk_end,
        )  # fmt: skip

    def _merge(self, one: Partial, other: Partial) -> Partial:
        return merge(one, other, guards_empty=self._guards_empty)
