"""The configuration of a vLLM scheduler that a trace's manifest tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepscope.ingest.errors import ConfigError, NotReplayed
from stepscope.ingest.replay.vllm.building import KNOWN
from stepscope.ingest.replay.vllm.kv_groups import FULL, SPECS

SECTIONS = (
    "scheduler_config", "cache_config", "model_config", "parallel_config", "lora_config",
    "scheduler",
)  # fmt: skip
NEEDED = ("max_num_seqs", "max_num_batched_tokens", "max_model_len", "block_size", "num_blocks")
NOT_SET = ("spec_method", "kv_cache_groups", "hash_block_size", "content_block_size")
"""Told by the manifest, and not to be set by hand."""
Json = dict[str, Any]


def recorded(config: Json) -> Json:
    """What the manifest tells, in one table: sections of vLLM's own names, or a table already.

    `num_blocks` counts the KV blocks that requests can have.
    """
    flat = dict(config.get("engine") or {})
    for section in SECTIONS:
        flat |= {name: value for name, value in (config.get(section) or {}).items()
                 if name not in flat or flat[name] is None}  # fmt: skip
    if flat.get("num_blocks") is None and flat.get("num_gpu_blocks"):
        flat["num_blocks"] = flat["num_gpu_blocks"] - 1
    drafting = config.get("speculative_config") or {}
    if drafting.get("num_speculative_tokens"):
        flat["num_spec_tokens"] = drafting["num_speculative_tokens"]
        flat["spec_method"] = drafting.get("method")
    if config.get("kv_cache_groups"):
        flat["kv_cache_groups"] = config["kv_cache_groups"]
    flat["content_block_size"] = flat.get("block_size")
    return {name: flat[name] for name in (*KNOWN, *NOT_SET) if name in flat}


def changed(config: Json, settings: Mapping[str, Any], where: str) -> Json:
    """The configuration with other settings.

    Another block size is that of the KV cache group too, and of its hashes where those do not fit.
    Raises `ConfigError` where several groups have blocks of their own.
    """
    found = {**config, **settings}
    size = settings.get("block_size")
    if size is None:
        return found
    groups = config.get("kv_cache_groups") or ()
    if len(groups) > 1:
        raise ConfigError(
            "it has several KV cache groups, whose blocks fit each other as they are",
            where=where, todo="leave block_size as it was recorded",
        )  # fmt: skip
    if groups:
        found["kv_cache_groups"] = [{**groups[0], "block_size": size}]
    if size % (config.get("hash_block_size") or size):
        found["hash_block_size"] = size
    return found


def refuse_what_is_not_replayed(config: Json, where: str) -> None:
    """Raise `NotReplayed` for what no replay of vLLM can do."""
    if config.get("kv_transfer_config"):
        raise NotReplayed(
            "KV blocks came from another machine (a KV connector), which is not replayed",
            where=where,
        )
    groups = config.get("kv_cache_groups") or ()
    unknown = sorted({str(each.get("spec")) for each in groups} - {*SPECS, "None"})
    if unknown:
        raise NotReplayed(
            f"it has a KV cache of {', '.join(unknown)}, which is not replayed", where=where
        )


def whole_group(config: Json) -> int:
    """The KV cache group that keeps all tokens of a request: the first without a window, else 0."""
    groups = config.get("kv_cache_groups") or ()
    kept = (number for number, each in enumerate(groups)
            if SPECS.get(str(each.get("spec"))) == FULL)  # fmt: skip
    return next(kept, 0)
