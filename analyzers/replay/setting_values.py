"""What each setting of a scheduler may be set to; engines fail in ways of their own on the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

MOST = 2**31 - 1
MOST_BLOCKS, MOST_TOKENS = 2**22, 2**24
"""A pool is built block by block: larger ones take more memory than a machine has."""


class Values(NamedTuple):
    """What is taken, in words, and whether a value is."""

    said: str
    holds: Callable[[Any], bool]


def _whole(least: int, most: int = MOST) -> Values:
    def holds(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return Values(f"a whole number from {least:,} to {most:,}", holds)


def _real(most: float) -> Values:
    def holds(value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most

    return Values(f"a number from 0 to {most:g}", holds)


def _one_of(*texts: str) -> Values:
    return Values(" or ".join(texts), lambda value: value in texts)


SWITCH = Values("true or false", lambda value: isinstance(value, bool))
TEXT = Values("a name", lambda value: isinstance(value, str) and bool(value))
COUNT, NUMBER, ANY_NUMBER = _whole(1), _whole(0), _whole(-MOST)
VALUES: dict[str, Values] = {
    "max_num_seqs": COUNT, "max_num_batched_tokens": COUNT, "max_num_scheduled_tokens": COUNT,
    "max_num_active_seqs": COUNT, "policy": _one_of("fcfs", "priority"),
    "async_scheduling": SWITCH, "long_prefill_token_threshold": NUMBER,
    "long_prefill_token_threshold_adaptive": SWITCH, "enable_chunked_prefill": SWITCH,
    "watermark": _real(1), "scheduler_reserve_full_isl": SWITCH,
    "max_num_partial_prefills": COUNT, "max_long_partial_prefills": COUNT,
    "disable_chunked_mm_input": SWITCH, "scheduler_cls": TEXT, "prefill_schedule_interval": COUNT,
    "max_num_queued_reqs": NUMBER, "max_num_queued_tokens": NUMBER, "block_size": _whole(1, 2**16),
    "enable_prefix_caching": SWITCH, "sliding_window": COUNT,
    "num_blocks": _whole(1, MOST_BLOCKS), "max_model_len": COUNT, "num_spec_tokens": NUMBER,
    "pipeline_parallel_size": COUNT, "max_loras": NUMBER,
    "max_running_requests": COUNT, "max_queued_requests": NUMBER,
    "max_total_tokens": _whole(1, MOST_TOKENS), "chunked_prefill_size": ANY_NUMBER,
    "prefill_decode_interval": NUMBER, "prefill_decode_interval_min_bs": NUMBER,
    "max_prefill_tokens": COUNT, "prefill_max_requests": COUNT, "schedule_policy": TEXT,
    "enable_priority_scheduling": SWITCH, "disable_priority_preemption": SWITCH,
    "default_priority_value": ANY_NUMBER, "abort_on_priority_when_disabled": SWITCH,
    "schedule_low_priority_values_first": SWITCH,
    "priority_scheduling_preemption_threshold": ANY_NUMBER, "retraction_policy": TEXT,
    "schedule_conservativeness": _real(100), "page_size": _whole(1, 2**16),
    "enable_mixed_chunk": SWITCH, "disable_overlap_schedule": SWITCH,
    "disable_radix_cache": SWITCH, "radix_eviction_policy": TEXT, "context_len": COUNT,
}  # fmt: skip
"""By the name of a setting, of vLLM's and then of SGLang's."""


def refused(name: str, value: Any) -> str | None:
    """Say what a setting takes, where it does not take this value; null is not set."""
    values = VALUES[name]
    return None if value is None or values.holds(value) else values.said
