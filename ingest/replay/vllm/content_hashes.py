"""Hashes that stand for what a request's KV blocks hold: equal for equal tokens behind equals."""

from __future__ import annotations

from collections.abc import Sequence


class ContentHashes:
    """Hashes of `block_size` tokens each, of contents that are known by blocks of `content_size`.

    A scheduler may hash smaller blocks than it keeps, and a replay may be asked for other ones than
    were recorded.
    """

    def __init__(self, block_size: int, content_size: int) -> None:
        self.block_size = block_size
        self._content_size = content_size
        self._num_alone = 0

    def of(self, contents: Sequence[int], first: int, num_tokens: int) -> list[bytes]:
        """The hashes of the full blocks of so many tokens, from the block `first` on."""
        return [self._of(contents, at) for at in range(first, num_tokens // self.block_size)]

    def _of(self, contents: Sequence[int], at: int) -> bytes:
        """What is known up to the block's last token; else it is like no other."""
        last, inside = divmod((at + 1) * self.block_size - 1, self._content_size)
        if last < len(contents):
            return b"known" + contents[last].to_bytes(19, "big") + inside.to_bytes(8, "big")
        self._num_alone += 1
        return b"alone" + self._num_alone.to_bytes(27, "big")
