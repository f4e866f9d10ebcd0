"""What a step's batch is lowered to: one task graph per step.

Adding a workload is one function and one line in `WORKLOADS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from stepscope.engine.device.graphs.kernels import Share
from stepscope.engine.device.graphs.tasks import TaskGraph
from stepscope.engine.device.lowering.attention import paged_attention
from stepscope.engine.device.lowering.moe import moe_interleaved, moe_layer
from stepscope.engine.device.lowering.qwen3 import qwen3_layer
from stepscope.engine.device.lowering.stressors import mix_flood, mix_starvation, sync_mix_spill
from stepscope.engine.named import named

Lower = Callable[[TaskGraph, Share, Random, int], None]


@dataclass(frozen=True, slots=True)
class Workload:
    """A way to lower a batch: `lower(graph, share, random, num_groups)` submits its tasks."""

    name: str
    summary: str
    lower: Lower


WORKLOADS: tuple[Workload, ...] = (
    Workload("moe-interleaved", "4 MoE layers of 3 micro-batches in flight", moe_interleaved),
    Workload("moe-layer", "one MoE decode layer", moe_layer),
    Workload("paged-attention", "QK, softmax, PV, update over KV blocks", paged_attention),
    Workload("qwen3-layer", "one Qwen3-14B decode layer", qwen3_layer),
    Workload("mix-starvation", "18 MIX x4 and 2 all-or-nothing MIX x6", mix_starvation),
    Workload("sync-mix-spill", "every AIV busy, then a MIX on all groups at once", sync_mix_spill),
    Workload("mix-flood", "2 MIX x48", mix_flood),
)


def workload(name: str) -> Workload:
    """The workload of that name; raises ConfigError naming all of them for any other."""
    return named(name, WORKLOADS, "device workload")
