"""Attention over a part of the keys, and how two parts make one.

A softmax over many keys need not see them at once. Over a part of them it gives an output and the
logarithm of the sum of the exponentials of its scores, `lse`; two outputs are averaged with the
weights `exp(lse)`. A part may be empty: its `lse` is -inf, its weight 0. Where both parts are, the
weights are 0 / 0, and the output has to be *said* to be 0.

The arithmetic of FlashAttention and Flash-Decoding: https://arxiv.org/abs/2205.14135
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Partial:
    """What T queries of H heads got from some of the keys: `out` [H, T, D] and `lse` [H, T]."""

    out: Tensor
    lse: Tensor

    @classmethod
    def of_nothing(cls, query: Tensor) -> Partial:
        """Return what the queries, [T, H, D], get from no keys."""
        num_tokens, num_heads, head_dim = query.shape
        out = query.new_zeros(num_heads, num_tokens, head_dim)
        return cls(out, query.new_full((num_heads, num_tokens), -torch.inf))


def attend(query: Tensor, key: Tensor, value: Tensor, is_visible: Tensor) -> Partial:
    """Attend from T tokens to K; any K will do, and none may be visible.

    `query` is [T, H, D], `key` and `value` [K, KV heads, D], each KV head for H / KV heads query
    heads in a row; `is_visible` is [T, K].
    """
    num_tokens, num_heads, head_dim = query.shape
    num_kv_heads = key.shape[1]
    groups = query.view(num_tokens, num_kv_heads, num_heads // num_kv_heads, head_dim)
    scores = groups.permute(1, 2, 0, 3) @ key.permute(1, 2, 0)[:, None] * head_dim**-0.5
    scores = scores.masked_fill(~is_visible, -torch.inf)
    lse = torch.logsumexp(scores, dim=-1)
    weights = torch.exp(scores - _finite(lse)[..., None])
    out = weights @ value.transpose(0, 1)[:, None]
    return Partial(out.flatten(0, 1), lse.flatten(0, 1))


def merge(one: Partial, other: Partial, *, guards_empty: bool = True) -> Partial:
    """Return what the queries get from the keys of both parts.

    Without `guards_empty`, a query that sees nothing in either gets NaN.
    """
    highest = torch.maximum(one.lse, other.lse)
    if guards_empty:
        highest = _finite(highest)
    weight, other_weight = torch.exp(one.lse - highest), torch.exp(other.lse - highest)
    total = weight + other_weight
    divisor = total.masked_fill(total == 0, 1.0) if guards_empty else total
    out = one.out * (weight / divisor)[..., None] + other.out * (other_weight / divisor)[..., None]
    return Partial(out, highest + torch.log(total))


def _finite(lse: Tensor) -> Tensor:
    """Return 0 for what saw nothing: -inf minus itself would be NaN."""
    return lse.masked_fill(lse == -torch.inf, 0.0)
