"""From logits to a token: the largest one, and what can be said of the logits in a trace."""

from __future__ import annotations

from hashlib import blake2b

import torch
from torch import Tensor

from stepscope.engine.request import EOS_TOKEN

DIGITS = 6  # decimals of a logit that its digest sees; float64 leaves some 8 more for rounding


def greedy(logits: Tensor, number: int, eos_after: int | None = None) -> int:
    """Return the token with the largest of `logits`, [vocab_size], as output token `number`.

    Numbers begin with 1. An output is as long as its workload says: it ends with token number
    `eos_after` and nowhere else, as benchmarks of serving engines have it (`ignore_eos`).
    """
    if number == eos_after:
        return EOS_TOKEN
    allowed = logits.clone()
    allowed[EOS_TOKEN] = -torch.inf
    return int(allowed.argmax())


def margin(logits: Tensor) -> float:
    """Return by how much the largest of `logits`, [vocab_size], is larger than the next."""
    first, second = torch.topk(logits, 2).values.tolist()
    return float(first - second)


def digest(logits: Tensor) -> str:
    """Return a name for `logits`, the same for those that agree to 6 decimals; `nan` if any is."""
    if bool(logits.isnan().any()):
        return "nan"
    rounded = (logits * 10**DIGITS).round().to(torch.int64)
    return blake2b(rounded.cpu().numpy().tobytes(), digest_size=8).hexdigest()
