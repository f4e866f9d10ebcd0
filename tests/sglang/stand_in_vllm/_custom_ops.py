"""The rotation of positions, in torch."""

from __future__ import annotations

from typing import Any


def rotary_embedding(
    positions: Any, query: Any, key: Any, head_size: int, angles: Any, _: bool
) -> None:
    """Turn each pair of a head's two halves by the angle of its position, in place."""
    cosine, sine = angles[positions.flatten()].unsqueeze(1).chunk(2, dim=-1)
    for heads in (query, key):
        first, second = heads.view(positions.numel(), -1, head_size).chunk(2, dim=-1)
        turned = first * cosine - second * sine
        second.copy_(second * cosine + first * sine)
        first.copy_(turned)
