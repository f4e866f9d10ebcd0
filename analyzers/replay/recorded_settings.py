"""The configuration of a scheduler that a trace's manifest tells, and what is set otherwise."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from stepscope.ingest.errors import ConfigError
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.replay.vllm.building import KNOWN

SECTIONS = ("scheduler_config", "cache_config", "model_config", "parallel_config", "scheduler")
NEEDED = ("max_num_seqs", "max_num_batched_tokens", "max_model_len", "block_size", "num_blocks")
NOT_REPLAYED = {
    "kv_transfer_config": "KV blocks came from another machine (a KV connector)",
    "lora_config": "LoRA adapters took turns",
}
Json = dict[str, Any]


def config_of(manifest: Manifest, settings: Mapping[str, Any], where: str) -> Json:
    """Give the scheduler's configuration, as it was recorded and with `settings` in place of it.

    `num_blocks` counts the KV blocks that requests can have. Raises `ConfigError` where the trace
    is not of vLLM, tells no configuration, or tells of what no replay can do.
    """
    for section, what in NOT_REPLAYED.items():
        if manifest.config.get(section):
            raise ConfigError(f"{what}, which is not replayed", where=where)
    groups = manifest.config.get("kv_cache_groups") or ()
    if len(groups) > 1:
        raise ConfigError(
            f"it has {len(groups)} KV cache groups; only one is replayed", where=where
        )
    config = {**_recorded(manifest.config), **settings}
    if missing := [name for name in NEEDED if config.get(name) is None]:
        raise ConfigError(
            f"it was written by {manifest.producer or 'nobody knows what'}, and tells of no vLLM"
            f" scheduler its {', '.join(missing)}", where=where,
            todo="give each with --set NAME=VALUE, or record vLLM itself (docs/replay.md)",
        )  # fmt: skip
    return config


def settings_of(texts: Iterable[str]) -> Json:
    """Read NAME=VALUE; raises `ConfigError` for a name that no scheduler is configured by."""
    settings: Json = {}
    for text in texts:
        name, is_set, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not is_set or name not in KNOWN:
            near = difflib.get_close_matches(name, KNOWN, 1)
            raise ConfigError(
                f"--set {text}: there is no setting {name!r}" if is_set else
                f"--set {text}: write NAME=VALUE",
                todo=f"did you mean {near[0]}?" if near else f"settings: {', '.join(KNOWN)}",
            )  # fmt: skip
        settings[name] = _value(value)
    return settings


def _value(text: str) -> Any:
    """A number, true, false or null as JSON writes it; anything else is a text."""
    try:
        return json.loads(text.lower() if text.lower() in ("true", "false", "none") else text)
    except ValueError:
        return None if text.lower() == "none" else text


def _recorded(config: Json) -> Json:
    """What the manifest tells, in one table: sections of vLLM's own names, or a table already."""
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
    return {name: flat[name] for name in (*KNOWN, "spec_method") if name in flat}
