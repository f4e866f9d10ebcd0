"""Who comes to which engine: each situation asks the scheduler for something else."""

from __future__ import annotations

from typing import Any

from tests.vllm.runs import Situation
from tests.vllm.tiny_llama import words

Row = dict[str, Any]
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["a"],
    "additionalProperties": False,
}
DRAFTS = {
    "method": "ngram", "num_speculative_tokens": 3,
    "prompt_lookup_min": 1, "prompt_lookup_max": 3,
}  # fmt: skip
GRAMMAR = {"backend": "lm-format-enforcer"}


def crowd() -> Situation:
    """Twenty requests on 24 blocks, which have room for eight of them: some are preempted."""
    requests = [
        _request(number, 30 + number * 37 % 90, 20 + number * 13 % 60) for number in range(20)
    ]
    return Situation("crowd", requests, at_once=True)


def prefixes() -> Situation:
    """Prompts that begin alike, with a prefix cache; they come while others run."""
    shared = words(100, 5)
    requests = [
        _request(number, 10 + number * 11 % 70, 8 + number * 7 % 40, shared=shared, at=number * 3)
        for number in range(16)
    ]
    engine = {"enable_prefix_caching": True, "long_prefill_token_threshold": 48}
    return Situation("prefixes", requests, engine)


def mix() -> Situation:
    """Priorities, a prefix cache, grammars, drafts, late arrivals and aborts, all together."""
    requests = [_mixed(number) for number in range(24)]
    engine = {
        "scheduling_policy": "priority",
        "enable_prefix_caching": True,
        "speculative_config": DRAFTS,
        "structured_outputs_config": GRAMMAR,
        "max_num_batched_tokens": 64,
        "long_prefill_token_threshold": 32,
        "num_gpu_blocks_override": 14,
        "max_model_len": 256,
    }
    return Situation("mix", requests, engine)


def grammar() -> Situation:
    """Half of the requests have to write JSON."""
    requests = [
        _request(number, 20 + number, 12, schema=SCHEMA if number % 2 else None, at=number)
        for number in range(10)
    ]
    return Situation("grammar", requests, {"structured_outputs_config": GRAMMAR})


def adapters() -> Situation:
    """Requests for two LoRAs, of which one fits into a batch: the others wait for it."""
    requests = [
        _request(
            number, 20 + number * 13 % 60, 10 + number * 7 % 20, at=number // 4,
            lora=number % 3 or None,
        )
        for number in range(12)
    ]  # fmt: skip
    return Situation(
        "adapters", requests, {"enable_lora": True, "max_loras": 1, "max_lora_rank": 8}
    )


def overlapped() -> Situation:
    """The crowd, some of it aborted, under asynchronous scheduling: steps overlap."""
    requests = [
        _request(
            number, 30 + number * 37 % 90, 20 + number * 13 % 60, at=number * 2,
            abort_at=number * 2 + 15 if number % 7 == 3 else None,
        )
        for number in range(20)
    ]  # fmt: skip
    return Situation("overlapped", requests, is_async=True)


IN_PROCESS = (overlapped, adapters, crowd, prefixes, grammar, mix)


def _mixed(number: int) -> Row:
    return _request(
        number, 10 + number * 29 % 80, 10 + number * 17 % 70,
        shared=words(64, 5) if number % 3 == 0 else "",
        schema=SCHEMA if number % 5 == 2 else None,
        priority=number * 7 % 4,
        at=number * 2,
        abort_at=number * 2 + 12 if number % 8 == 5 else None,
    )  # fmt: skip


def _request(number: int, length: int, max_tokens: int, *, shared: str = "", **more: Any) -> Row:
    prompt = f"{shared} {words(length, number * 100)}".strip()
    return {"id": str(number), "prompt": prompt, "max_tokens": max_tokens, **more}
