"""From logits to a token: the largest one, and what can be said of the logits in a trace.

Logits are tensors, or arrays on the host, where small ones are looked at faster.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stepscope.engine.requests.request import EOS_TOKEN

if TYPE_CHECKING:
    from torch import Tensor

DIGITS = 6  # decimals of a logit that its digest sees; float64 leaves some 8 more for rounding
Logits = NDArray[np.float64]


def greedy(
    logits: Logits | Tensor,
    number: int,
    eos_after: int | None = None,
    *,
    ends_at_eos: bool = False,
) -> int:
    """Return the token with the largest of `logits`, [vocab_size], as output token `number`.

    Numbers begin with 1. Token number `eos_after` is the end, whatever the logits. With
    `ends_at_eos` any other may be, if it is the likeliest; without, none is, so that outputs are as
    long as their workload says, as benchmarks of serving engines want them.
    """
    if number == eos_after:
        return EOS_TOKEN
    allowed = _on_host(logits)
    if not ends_at_eos:
        allowed = allowed.copy()
        allowed[EOS_TOKEN] = -np.inf
    return int(allowed.argmax())


def margin(logits: Logits | Tensor) -> float:
    """Return by how much the largest of `logits`, [vocab_size], is larger than the next."""
    second, first = np.partition(_on_host(logits), -2)[-2:]
    return float(first - second)


def digest(logits: Logits | Tensor) -> str:
    """Return a name for `logits`, the same for those that agree to 6 decimals; `nan` if any is."""
    values = _on_host(logits)
    if np.isnan(values).any():
        return "nan"
    rounded = np.rint(values * 10**DIGITS).astype(np.int64)
    return blake2b(rounded.tobytes(), digest_size=8).hexdigest()


def _on_host(logits: Logits | Tensor) -> Logits:
    return logits if isinstance(logits, np.ndarray) else logits.cpu().numpy()
