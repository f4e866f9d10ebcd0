"""Three graphs that exist to hurt a dispatcher, after the runtime's own stress tests."""

from __future__ import annotations

from random import Random

from stepscope.engine.device.graphs.kernels import Share, Writer
from stepscope.engine.device.graphs.tasks import TaskGraph


def mix_starvation(graph: TaskGraph, share: Share, random: Random, num_groups: int) -> None:
    """Two all-or-nothing MIX among eighteen ordinary ones that keep the groups busy."""
    del share, num_groups
    writer = Writer(graph, random)
    for i in range(20):
        is_sync = i in (6, 13)
        writer.kernel("sync_mix" if is_sync else "mix", "MIX", 6 if is_sync else 4, 10.0,
                      is_sync_start=is_sync)  # fmt: skip


def sync_mix_spill(graph: TaskGraph, share: Share, random: Random, num_groups: int) -> None:
    """Vector work on every AIV, then a MIX that wants every group at once."""
    del share
    writer = Writer(graph, random)
    writer.kernel("vector", "AIV", 2 * num_groups, 10.0)
    writer.kernel("sync_mix", "MIX", num_groups, 10.0, is_sync_start=True)


def mix_flood(graph: TaskGraph, share: Share, random: Random, num_groups: int) -> None:
    """Two MIX of 48 blocks each: more than any device has groups."""
    del share, num_groups
    writer = Writer(graph, random)
    for _ in range(2):
        writer.kernel("mix", "MIX", 48, 10.0)
