"""What a model says to one request alone."""

from __future__ import annotations

from typing import NamedTuple


class Stream(NamedTuple):
    """A request's output: its tokens, a digest of the logits of each, and the smallest margin."""

    tokens: tuple[int, ...]
    digests: tuple[str, ...]
    margin: float
