"""What is new of a row: the tokens that a forward pass is given of one request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class RowTokens(NamedTuple):
    """New tokens of a request, the first at position `first`, and the blocks that it holds."""

    tokens: Sequence[int]
    first: int
    block_table: Sequence[int]
