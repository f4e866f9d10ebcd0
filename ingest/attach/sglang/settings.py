"""What the manifest says of an SGLang's settings: what rules and a replay of its scheduler need."""

from __future__ import annotations

import os
from typing import Any

_OF_SCHEDULER = (
    "schedule_policy", "enable_priority_scheduling", "enable_overlap", "enable_lora", "page_size",
    "chunked_prefill_size", "is_mixed_chunk", "max_prefill_tokens", "max_running_requests",
    "max_total_num_tokens",
)  # fmt: skip
SCHEDULE = (
    "max_running_requests", "max_queued_requests", "max_total_tokens", "chunked_prefill_size",
    "prefill_decode_interval", "prefill_decode_interval_min_bs", "max_prefill_tokens",
    "prefill_max_requests", "schedule_policy", "enable_priority_scheduling",
    "disable_priority_preemption", "default_priority_value", "abort_on_priority_when_disabled",
    "schedule_low_priority_values_first", "priority_scheduling_preemption_threshold",
    "retraction_policy", "schedule_conservativeness", "page_size", "enable_mixed_chunk",
    "disable_overlap_schedule",
)  # fmt: skip
MEMORY = ("disable_radix_cache", "radix_eviction_policy")
DRAFTS = ("speculative_algorithm", "speculative_num_draft_tokens")
"""Names of SGLang's own arguments, by which it configures its scheduler."""
_ENVIRONMENT = (
    "SGLANG_TEST_RETRACT", "SGLANG_TEST_RETRACT_INTERVAL", "SGLANG_TEST_RETRACT_NO_PREFILL_BS",
    "SGLANG_INIT_NEW_TOKEN_RATIO", "SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR",
    "SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS", "SGLANG_RETRACT_DECODE_STEPS",
    "SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION", "SGLANG_MAX_NEW_TOKENS_LIMIT",
    "IN_BATCH_PREFIX_CACHING_CHECK_THRESHOLD", "IN_BATCH_PREFIX_CACHING_DEPRIORITIZE_THRESHOLD",
)  # fmt: skip
"""Variables that change what its scheduler decides."""


def config_of(scheduler: Any) -> dict[str, Any]:
    """Give the settings of a scheduler, as JSON can hold them.

    `engine` and `scheduler` are what rules look up of any engine, by our names.
    """
    from sglang.srt import runtime_context

    return {
        **{name: getattr(scheduler, name, None) for name in _OF_SCHEDULER},
        "engine": {
            "max_num_seqs": scheduler.max_running_requests,
            "block_size": scheduler.token_to_kv_pool_allocator.page_size,
        },
        "scheduler": {
            "mixed": bool(scheduler.is_mixed_chunk),
            "decode_rounds": getattr(scheduler, "prefill_decode_interval", None) or 0,
        },
        "context_len": getattr(getattr(scheduler, "model_config", None), "context_len", None),
        "schedule": _said(runtime_context, "get_schedule", SCHEDULE),
        "memory": _said(runtime_context, "get_memory", MEMORY),
        "drafts": _said(runtime_context, "get_spec", DRAFTS),
        "environment": {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
    }


def _said(module: Any, getter: str, names: tuple[str, ...]) -> dict[str, Any]:
    """What this version has of these settings."""
    if not hasattr(module, getter):
        return {}
    settings = getattr(module, getter)()
    found = {name: getattr(settings, name, None) for name in names if hasattr(settings, name)}
    return {name: value for name, value in found.items()
            if value is None or isinstance(value, bool | int | float | str)}  # fmt: skip
