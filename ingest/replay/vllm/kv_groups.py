"""The KV cache groups of a recorded run, as vLLM's own specifications: layers that keep alike.

A scheduler looks at their block sizes and windows alone. Of what a token takes up nothing matters
here, so each group has a head of one number.
"""

from __future__ import annotations

import dataclasses
from typing import Any

FULL, WINDOW, CHUNK = "FullAttentionSpec", "SlidingWindowSpec", "ChunkedLocalAttentionSpec"
SPECS = {FULL: FULL, "MLAAttentionSpec": FULL, WINDOW: WINDOW, CHUNK: CHUNK}
"""What a recorded group is replayed as: blocks of MLA are kept as those of full attention are."""
Json = dict[str, Any]


def kv_cache_config(config: Json) -> Any:
    """Make vLLM's KVCacheConfig of `num_blocks` blocks and the null block."""
    from vllm.v1.kv_cache_interface import KVCacheConfig, KVCacheGroupSpec

    recorded = config.get("kv_cache_groups") or [{}]
    groups = [
        KVCacheGroupSpec([f"layer.{number}"], _spec(group, config["block_size"]))
        for number, group in enumerate(recorded)
    ]
    return _of(KVCacheConfig, num_blocks=config["num_blocks"] + 1, kv_cache_tensors=[],
               kv_cache_groups=groups)  # fmt: skip


def _spec(group: Json, block_size: int) -> Any:
    import torch
    from vllm.v1 import kv_cache_interface

    kind = getattr(kv_cache_interface, SPECS[group.get("spec") or FULL])
    windows = {name: group[name] for name in ("sliding_window", "attention_chunk_size")
               if group.get(name) is not None}  # fmt: skip
    return _of(kind, block_size=group.get("block_size") or block_size, num_kv_heads=1,
               head_size=1, dtype=torch.float32, use_mla=False, **windows)  # fmt: skip


def _of(kind: Any, **given: Any) -> Any:
    names = {each.name for each in dataclasses.fields(kind)}
    return kind(**{name: value for name, value in given.items() if name in names})
