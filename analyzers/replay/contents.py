"""What each KV block of each request holds, as far as a trace tells: by hashes and by sharing.

Blocks whose recorded hash is the same hold the same tokens behind the same prefix. Where no hashes
were recorded, a request that shares a block has in that place what the block's last owner had
there, and before it what that owner had before it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import polars as pl

from stepscope.ingest.trace import Trace

Place = tuple[str, int]
"""A request, and a KV block of it counted from 0."""


def contents_of(trace: Trace, rank: int, group: int = 0) -> dict[str, tuple[int, ...]]:
    """Number what each request's KV blocks hold, in order; equal numbers are equal contents.

    Of several KV cache groups one is looked at, which should be one that keeps all of a request.
    """
    rows = _changes(trace, rank, group)
    same = _Same()
    held: dict[int, Place] = {}
    tables: dict[str, list[int]] = defaultdict(list)
    longest: dict[str, int] = defaultdict(int)
    by_hash: dict[str, Place] = {}
    for op, block, owner, block_hash in rows:
        table = tables[owner]
        if op == "share":
            same.up_to((owner, len(table)), held.get(block))
            table.append(block)
        elif op == "claim":
            held[block] = (owner, len(table))
            table.append(block)
        elif op == "release" and block in table:
            table.remove(block)
        elif op == "cache" and block_hash is not None and block in held:
            same.join(held[block], by_hash.setdefault(block_hash, held[block]))
        longest[owner] = max(longest[owner], len(table))
    return {
        owner: tuple(same.number((owner, at)) for at in range(num))
        for owner, num in longest.items()
    }


def _changes(trace: Trace, rank: int, group: int) -> Iterable[tuple[str, int, str, str | None]]:
    """The rows of `allocations` about KV blocks: op, id, owner, hash, in the order of recording."""
    has_hash = "block_hash" in trace.allocations.collect_schema().names()
    block_hash = pl.col("block_hash") if has_hash else pl.lit(None, pl.String)
    rows = (
        trace.allocations.filter((pl.col("rank") == rank) & (pl.col("resource") == "kv-block"))
        .filter(pl.col("group").fill_null(0) == group)
        .sort("ts_ns", maintain_order=True)
        .select("op", "id", "owner", block_hash)
        .collect()
    )
    return rows.iter_rows()


class _Same:
    """Which places hold the same: sets that are joined, each named by a number."""

    def __init__(self) -> None:
        self._above: dict[Place, Place] = {}
        self._numbers: dict[Place, int] = {}

    def up_to(self, place: Place, other: Place | None) -> None:
        """Join two places and all before them: what is cached depends on its whole prefix."""
        if other is None:
            return
        (request, at), (owner, there) = place, other
        if at != there:
            return  # another group of layers, or a window that has slid: nothing is known
        for each in range(at, -1, -1):
            if not self.join((request, each), (owner, each)):
                break

    def join(self, place: Place, other: Place) -> bool:
        """Join two places; false where they were one already."""
        ours, theirs = self._top(place), self._top(other)
        if ours == theirs:
            return False
        self._above[ours] = theirs
        return True

    def number(self, place: Place) -> int:
        """The number of what a place holds."""
        return self._numbers.setdefault(self._top(place), len(self._numbers))

    def _top(self, place: Place) -> Place:
        path = []
        while (above := self._above.get(place)) is not None:
            path.append(place)
            place = above
        for each in path:
            self._above[each] = place
        return place


def shared_blocks(contents: Mapping[str, tuple[int, ...]]) -> int:
    """Count the places that hold what another request's does too."""
    seen: dict[int, int] = defaultdict(int)
    for numbers in contents.values():
        for number in set(numbers):
            seen[number] += 1
    return sum(1 for count in seen.values() if count > 1)
