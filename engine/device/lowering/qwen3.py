"""A decode layer of Qwen3-14B, with the tasks and block counts of the runtime's own trace.

The attention is one MIX block per core group and starts on all groups at once or not at all.
"""

from __future__ import annotations

from random import Random

from stepscope.engine.device.graphs.kernels import Share, Writer, row, whole
from stepscope.engine.device.graphs.tasks import Region, TaskGraph

NUM_OUT, NUM_UP, NUM_SILU, NUM_DOWN = 26, 55, 17, 85


def qwen3_layer(graph: TaskGraph, share: Share, random: Random, num_groups: int) -> None:
    """Projections, attention, and a feed-forward network cut into many small tasks."""
    writer = Writer(graph, random)
    _attention(writer, 14.0 + share.context_len / 256, num_groups)
    _output(writer)
    _feed_forward(writer)


def _attention(writer: Writer, attention_us: float, num_groups: int) -> None:
    x, qkv = whole("x"), [row("qkv", i) for i in range(3)]
    seeds = [row("seeds", i) for i in range(3)]
    writer.kernel("x_gamma", "AIV", 5, 3.0, writes=[x])
    writer.kernel("rms_recip", "AIV", 1, 3.0, reads=[x], writes=[seeds[0]])
    writer.kernel("q_seed", "AIV", 1, 2.0, writes=[qkv[0]])
    writer.kernel("kv_seed", "AIV", 1, 2.0, reads=[x], writes=[Region("qkv", 1, 3)])
    writer.kernel("attn_out_seed", "AIV", 1, 2.0, writes=[seeds[1]])
    writer.kernel("mlp_out_seed", "AIV", 1, 2.0, writes=[seeds[2]])
    writer.kernel("q_proj", "AIC", 50, 4.0, reads=[x], writes=[qkv[0]])
    writer.kernel("k_proj", "AIC", 10, 4.0, reads=[x], writes=[qkv[1]])
    writer.kernel("v_proj", "AIC", 10, 4.0, reads=[x], writes=[qkv[2]])
    writer.kernel(
        "attention", "MIX", num_groups, attention_us,
        reads=[whole("qkv"), whole("seeds")], writes=[whole("attended")], is_sync_start=True,
    )  # fmt: skip


def _output(writer: Writer) -> None:
    for i in range(NUM_OUT):
        writer.kernel("out_proj", "AIC", 1, 5.0, reads=[whole("attended")], writes=[row("out", i)])
    rest = Region("out", NUM_OUT, NUM_OUT + 24)
    writer.kernel("out_proj_0", "AIC", 24, 5.0, reads=[whole("attended")], writes=[rest])
    for i, first in enumerate(range(0, NUM_OUT + 24, 10)):
        part = Region("out", first, first + 10)
        writer.kernel("residual", "AIV", 1, 4.0, reads=[part], writes=[row("residual", i)])
    writer.kernel("post_rms", "AIV", 1, 4.0, reads=[whole("out")], writes=[whole("norm")])


def _feed_forward(writer: Writer) -> None:
    for i in range(NUM_UP):
        source = [row("residual", i % 5)]
        writer.kernel("gate_proj", "AIC", 1, 5.0, reads=source, writes=[row("gate", i)])
        writer.kernel("up_proj", "AIC", 1, 5.0, reads=source, writes=[row("up", i)])
    for i in range(NUM_SILU):
        first, last = i * NUM_UP // NUM_SILU, (i + 1) * NUM_UP // NUM_SILU
        inputs = [Region("gate", first, last), Region("up", first, last), whole("norm")]
        writer.kernel("silu", "AIV", 1, 4.0, reads=inputs, writes=[row("act", i)])
    for i in range(NUM_DOWN):
        act = row("act", i % NUM_SILU)
        writer.kernel("down_proj", "AIC", 1, 5.0, reads=[act], writes=[row("down", i)])
    writer.kernel("x_gamma_next", "AIV", 5, 3.0, reads=[whole("down")], writes=[whole("x")])
