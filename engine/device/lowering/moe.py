"""Decode layers of a mixture-of-experts model, alone and interleaved.

A layer is fused attention (QK-PV, MIX), the gate (MIX), the dispatch of tokens to experts (vector),
32 experts of which about half have no token in this micro-batch and are predicated off, a shared
expert that runs beside them, and the combine (vector). A layer by itself shows no conflict: its MIX
tasks wait for all of its vector work anyway. Several micro-batches in flight do, as in the
pipelines of the report: one batch's attention becomes ready while another's vector work holds AIVs.
An expert's tasks are a scope of their own, as the body of a loop is in the runtime.
"""

from __future__ import annotations

from random import Random

from stepscope.engine.device.graphs.kernels import Share, Writer, row, whole
from stepscope.engine.device.graphs.tasks import Region, TaskGraph

NUM_LAYERS, NUM_BATCHES, NUM_EXPERTS = 4, 3, 32


def moe_layer(graph: TaskGraph, share: Share, random: Random, num_groups: int) -> None:
    """One layer for the whole batch."""
    del num_groups
    _layer(Writer(graph, random), "b0", share)


def moe_interleaved(graph: TaskGraph, share: Share, random: Random, num_groups: int) -> None:
    """Several layers of several independent micro-batches, submitted layer by layer."""
    del num_groups
    batches = share.split(NUM_BATCHES)
    for layer in range(NUM_LAYERS):
        for index, batch in enumerate(batches):
            _layer(Writer(graph, random, f" L{layer} b{index}"), f"b{index}", batch)


def _layer(writer: Writer, batch: str, share: Share) -> None:
    """A micro-batch's hidden state runs through its layers; all else is allocated anew."""
    hidden, layer = whole(f"{batch}.hidden"), f"{batch}{writer.suffix}"
    attended, routes = whole(f"{layer}.attended"), whole(f"{layer}.routes")
    # A longer history means more KV tiles per attention block; more tokens, more to push.
    attention_us = 14.0 + share.context_len / 256
    push_us = 9.0 + share.num_tokens / 4
    writer.kernel("qk_pv", "MIX", 8, attention_us, reads=[hidden], writes=[attended])
    writer.kernel("gate", "MIX", 1, 5.0, reads=[attended], writes=[routes])
    _dispatch(writer, layer, push_us)
    for expert in range(NUM_EXPERTS):
        with writer.graph.scope():
            _expert(writer, layer, expert)
    _shared_expert(writer, layer)
    outputs = [whole(f"{layer}.expert_out"), whole(f"{layer}.shared_out"), attended]
    writer.kernel("combine", "AIV", 32, push_us, reads=outputs, writes=[hidden])


def _dispatch(writer: Writer, layer: str, push_us: float) -> None:
    """Tokens travel to their experts: meta data, push, wait for the peers, gather."""
    routes, window = whole(f"{layer}.routes"), whole(f"{layer}.window")
    tokens = whole(f"{layer}.tokens")
    writer.kernel("meta", "AIV", 1, 3.0, reads=[routes], writes=[window])
    writer.kernel("push", "AIV", 32, push_us, reads=[whole(f"{layer}.attended")], writes=[window])
    writer.kernel("wait", "AIV", 1, 2.0, writes=[window])
    writer.kernel("gather", "AIV", 32, push_us, reads=[window], writes=[tokens])


def _expert(writer: Writer, layer: str, expert: int) -> None:
    """Up-projection pair, activation, quantisation, down-projection, activation."""
    enabled = writer.random.random() < 0.5
    own = Writer(writer.graph, writer.random, f" e{expert}{writer.suffix}")
    tokens, out = row(f"{layer}.tokens", expert), row(f"{layer}.expert_out", expert)
    up = [row(f"{layer}.up", 2 * expert + half) for half in (0, 1)]
    pair = Region(f"{layer}.up", 2 * expert, 2 * expert + 2)
    mid, packed, down = (row(f"{layer}.{t}", expert) for t in ("mid", "packed", "down"))
    own.kernel("gate", "AIC", 2, 5.0, reads=[tokens], writes=[up[0]], enabled=enabled)
    own.kernel("up", "AIC", 2, 5.0, reads=[tokens], writes=[up[1]], enabled=enabled)
    own.kernel("act", "AIV", 4, 10.0, reads=[pair], writes=[mid], enabled=enabled)
    own.kernel("q", "AIV", 1, 3.0, reads=[mid], writes=[packed], enabled=enabled)
    own.kernel("w2", "AIC", 4, 5.0, reads=[packed], writes=[down], enabled=enabled)
    own.kernel("act2", "AIV", 1, 10.0, reads=[down], writes=[out], enabled=enabled)


def _shared_expert(writer: Writer, layer: str) -> None:
    attended, up, mid = (whole(f"{layer}.{t}") for t in ("attended", "shared_up", "shared_mid"))
    writer.kernel("sh_gate", "AIC", 8, 6.0, reads=[attended], writes=[up])
    writer.kernel("sh_up", "AIC", 8, 6.0, reads=[up], writes=[mid])
    writer.kernel("sh_down", "AIC", 16, 6.0, reads=[mid], writes=[whole(f"{layer}.shared_out")])
