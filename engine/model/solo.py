"""The reference: a request by itself, computed anew for every token, densely and without a cache.

It shares weights, norms and MLPs with the decoder and nothing that serving adds: no pages, no
chunks, no merging, no batch. Positions are turned as complex numbers, attention is one softmax over
one matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as all of torch's own pages call it

from stepscope.engine.model.decoder import Decoder, DecoderLayer
from stepscope.engine.model.decoder_config import ModelConfig
from stepscope.engine.model.dtype import DTYPE
from stepscope.engine.model.layers.attention import Attention
from stepscope.engine.model.layers.recurrent import Recurrent
from stepscope.engine.model.sampler import digest, greedy, margin
from stepscope.engine.model.stream import Stream
from stepscope.engine.requests.request import EOS_TOKEN


def solo(
    decoder: Decoder,
    prompt: Sequence[int],
    max_tokens: int,
    eos_after: int | None = None,
    *,
    ends_at_eos: bool = False,
) -> Stream:
    """Return what `decoder` answers to `prompt` alone: `max_tokens` tokens, or up to the end.

    That is token number `eos_after`, and with `ends_at_eos` any that says so.
    """
    tokens, digests, smallest = list(prompt), [], torch.inf
    for number in range(1, min(max_tokens, eos_after or max_tokens) + 1):
        logits = dense_logits(decoder, tokens)[-1].cpu().numpy()
        tokens.append(greedy(logits, number, eos_after, ends_at_eos=ends_at_eos))
        digests.append(digest(logits))
        smallest = min(smallest, margin(logits))
        if ends_at_eos and tokens[-1] == EOS_TOKEN:
            break
    return Stream(tuple(tokens[len(prompt) :]), tuple(digests), smallest)


@torch.inference_mode()
def dense_logits(decoder: Decoder, tokens: Sequence[int]) -> Tensor:
    """Return the logits of every token of one sequence, [tokens, vocab_size]."""
    device = decoder.embedding.weight.device
    hidden = decoder.embedding(torch.tensor(tokens, device=device))
    for layer in decoder.layers:
        assert isinstance(layer, DecoderLayer)
        hidden = hidden + _mixed(layer.mixer, layer.mixer_norm(hidden))
        hidden = hidden + layer.feed_forward(hidden, decoder.experts)
    return decoder.logits(decoder.norm(hidden))


def _mixed(mixer: nn.Module, hidden: Tensor) -> Tensor:
    if isinstance(mixer, Recurrent):
        told: Tensor = mixer.output(mixer.states(hidden, torch.zeros_like(hidden[0])))
        return told
    assert isinstance(mixer, Attention)
    return _attend(mixer, hidden)


def _attend(attention: Attention, hidden: Tensor) -> Tensor:
    config = attention.config
    query = _turned(attention.query(hidden), config)
    key = _turned(attention.key(hidden), config)
    value = attention.value(hidden).view(len(hidden), -1, config.head_dim).transpose(0, 1)
    ratio = config.ratio_of(attention.layer)
    is_visible = _sees(len(hidden), config.window, ratio, hidden.device)
    if ratio:
        key, value = (torch.cat((each, _pooled(each, ratio)), 1) for each in (key, value))
    attended = F.scaled_dot_product_attention(
        query[None], key[None], value[None], attn_mask=is_visible, enable_gqa=True
    )
    out: Tensor = attention.output(attended[0].transpose(0, 1).flatten(1))
    return out


def _turned(projected: Tensor, config: ModelConfig) -> Tensor:
    """Return [heads, tokens, head_dim], each pair of features turned as a complex number."""
    heads = projected.view(len(projected), -1, 2, config.head_dim // 2)
    positions = torch.arange(len(projected), dtype=DTYPE, device=projected.device)
    pairs = torch.arange(config.head_dim // 2, dtype=DTYPE, device=projected.device)
    angles = positions[:, None, None] / config.rope_theta ** (2 * pairs / config.head_dim)
    turned = torch.complex(heads[:, :, 0], heads[:, :, 1]) * torch.exp(1j * angles)
    return torch.cat((turned.real, turned.imag), dim=-1).transpose(0, 1)


def _sees(num_tokens: int, window: int, ratio: int, device: torch.device) -> Tensor:
    """Return which tokens, and behind them which pooled blocks, each token sees."""
    tokens = torch.arange(num_tokens, device=device)
    distance = tokens[:, None] - tokens
    if not ratio:
        return distance >= 0
    block_ends = (torch.arange(num_tokens // ratio, device=device) + 1) * ratio - 1
    is_near = (distance >= 0) & (distance < window)
    return torch.cat((is_near, block_ends <= tokens[:, None]), dim=1)


def _pooled(heads: Tensor, ratio: int) -> Tensor:
    """Return the means of `ratio` tokens each, of [heads, tokens, D]; a rest is left out."""
    num_heads, num_tokens, width = heads.shape
    blocks = heads[:, : num_tokens // ratio * ratio]
    return blocks.reshape(num_heads, num_tokens // ratio, ratio, width).mean(2)
