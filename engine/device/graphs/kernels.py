"""Kernel times and sizes, and the hand that writes them into a task graph.

Nobody published kernel times for these layers, so they are ours: some 5 µs for a cube tile, 10 µs
for a vector kernel that moves tokens or activations, 15 µs for the fused attention. Each block
varies by up to a tenth around its kernel's time, and writes a tile of 128 x 128: in fp32 where a
cube accumulates, in bf16 where a vector core does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from stepscope.engine.device.graphs.tasks import AIC, AIV0, MIX_MASK, Region, Task, TaskGraph

MASKS = {"AIC": AIC, "AIV": AIV0, "MIX": MIX_MASK}
TILE_BYTES = {"AIC": 128 * 128 * 4, "AIV": 128 * 128 * 2, "MIX": 128 * 128 * 4}
US = 1_000


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a batch that one graph, or one micro-batch of it, computes.

    `context_len` is the mean number of tokens that a request attends to.
    """

    num_reqs: int
    num_tokens: int
    context_len: int

    def split(self, num_parts: int) -> tuple[Share, ...]:
        """Micro-batches of nearly equal size, the larger ones first."""
        reqs, tokens = _deal(self.num_reqs, num_parts), _deal(self.num_tokens, num_parts)
        return tuple(Share(r, t, self.context_len) for r, t in zip(reqs, tokens, strict=True))


@dataclass(frozen=True, slots=True)
class Writer:
    """Submits kernels of one layer: names end in `suffix`, times come from `random`."""

    graph: TaskGraph
    random: Random
    suffix: str = ""

    def kernel(
        self,
        name: str,
        shape: str,
        num_blocks: int,
        us: float,
        *,
        reads: Sequence[Region] = (),
        writes: Sequence[Region] = (),
        is_sync_start: bool = False,
        enabled: bool = True,
    ) -> Task:
        """Submit `num_blocks` blocks of about `us` microseconds each."""
        times = [round(us * US * self.random.uniform(0.9, 1.1)) for _ in range(num_blocks)]
        return self.graph.submit(
            f"{name}{self.suffix}", MASKS[shape], times,
            reads=reads, writes=writes, is_sync_start=is_sync_start, enabled=enabled,
            heap_bytes=num_blocks * TILE_BYTES[shape] if enabled else 0,
        )  # fmt: skip


def _deal(total: int, num_parts: int) -> list[int]:
    small, num_larger = divmod(total, num_parts)
    return [small + (part < num_larger) for part in range(num_parts)]


def whole(tensor: str) -> Region:
    """All of a tensor."""
    return Region(tensor, 0, 1 << 31)


def row(tensor: str, index: int) -> Region:
    """One row of a tensor."""
    return Region(tensor, index, index + 1)
