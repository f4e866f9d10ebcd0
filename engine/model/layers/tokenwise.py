"""The parts of a decoder layer that look at one token at a time."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as all of torch's own pages call it

from stepscope.engine.model.decoder_config import ModelConfig
from stepscope.engine.model.dtype import DTYPE


def linear(width_in: int, width_out: int) -> nn.Linear:
    """Return a projection without bias."""
    return nn.Linear(width_in, width_out, bias=False, dtype=DTYPE)


class RMSNorm(nn.Module):
    """Scales a token to a root mean square of 1, and each of its features by a weight."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, dtype=DTYPE))
        self.eps = eps

    def forward(self, hidden: Tensor) -> Tensor:
        """Return [..., width], normalised."""
        mean_square = hidden.square().mean(-1, keepdim=True)
        return hidden * torch.rsqrt(mean_square + self.eps) * self.weight


class SwiGLU(nn.Module):
    """The gated MLP: what goes up passes a gate on its way down."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate = linear(config.hidden_size, config.intermediate_size)
        self.up = linear(config.hidden_size, config.intermediate_size)
        self.down = linear(config.intermediate_size, config.hidden_size)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return [tokens, hidden_size]."""
        out: Tensor = self.down(F.silu(self.gate(hidden)) * self.up(hidden))
        return out


def rotate(heads: Tensor, positions: Tensor, theta: float) -> Tensor:
    """Turn each pair of features by an angle that grows with the token's position (RoPE).

    `heads` is [tokens, heads, head_dim]; feature i is paired with feature i + head_dim / 2, and
    turns by `position / theta ** (2 i / head_dim)`. Su et al., https://arxiv.org/abs/2104.09864
    """
    half = heads.shape[-1] // 2
    frequencies = theta ** (-torch.arange(half, dtype=DTYPE, device=heads.device) / half)
    angles = positions[:, None, None] * frequencies
    cos, sin = angles.cos(), angles.sin()
    first, second = heads[..., :half], heads[..., half:]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
