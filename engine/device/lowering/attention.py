"""Paged attention, tile by tile: QK (AIC), softmax (AIV), PV (AIC), update (AIV).

Every request's queries are cut into tiles of 128 and its KV into blocks of 128. A tile walks over
the blocks that it may see; the updates of a tile are chained, the rest of it overlaps.
"""

from __future__ import annotations

from random import Random

from stepscope.engine.device.graphs.kernels import Share, Writer, row, whole
from stepscope.engine.device.graphs.tasks import TaskGraph

TILE = 128


def paged_attention(graph: TaskGraph, share: Share, random: Random, num_groups: int) -> None:
    """Attention of every request over its own history."""
    del num_groups
    num_queries = max(1, share.num_tokens // share.num_reqs)
    num_before = max(0, share.context_len - num_queries)
    for request in range(share.num_reqs):
        for tile in range(_tiles(num_queries)):
            num_visible = num_before + min(num_queries, (tile + 1) * TILE)
            _tile(Writer(graph, random, f" r{request} t{tile}"), _tiles(num_visible))


def _tiles(num_tokens: int) -> int:
    return -(-num_tokens // TILE)


def _tile(writer: Writer, num_blocks: int) -> None:
    name = f"tile{writer.suffix}"
    for block in range(num_blocks):
        scores, weights, part = (row(f"{name}.{t}", block) for t in ("scores", "weights", "part"))
        writer.kernel("qk", "AIC", 1, 6.0, writes=[scores])
        writer.kernel("softmax", "AIV", 1, 4.0, reads=[scores], writes=[weights])
        writer.kernel("pv", "AIC", 1, 6.0, reads=[weights], writes=[part])
        writer.kernel("update", "AIV", 1, 3.0, reads=[part], writes=[whole(f"{name}.out")])
