"""The configuration of an SGLang scheduler that a trace's manifest tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepscope.ingest.attach.sglang.followed import TURN_OF
from stepscope.ingest.errors import NotReplayed
from stepscope.ingest.replay.sglang.building import KNOWN
from stepscope.ingest.trace import Trace

NEEDED = ("max_running_requests", "max_total_tokens", "context_len")
_EFFECTIVE = {
    "max_total_tokens": "max_total_num_tokens", "max_running_requests": "max_running_requests",
    "page_size": "page_size", "max_prefill_tokens": "max_prefill_tokens",
    "enable_mixed_chunk": "is_mixed_chunk", "context_len": "context_len",
    "schedule_policy": "schedule_policy",
}  # fmt: skip
"""What the scheduler made of its settings, by the name of the setting."""
Json = dict[str, Any]


def recorded(config: Json) -> Json:
    """What the manifest tells of the scheduler, by SGLang's own names of its settings."""
    flat = {**(config.get("schedule") or {}), **(config.get("memory") or {})}
    for name, told in _EFFECTIVE.items():
        if config.get(told) is not None:
            flat[name] = config[told]
    found = {name: flat[name] for name in KNOWN if name in flat}
    return {**found, "environment": config.get("environment") or {}}


def changed(config: Json, settings: Mapping[str, Any], _where: str) -> Json:
    """The configuration with other settings."""
    return {**config, **settings}


def refuse_what_is_not_replayed(config: Json, where: str) -> None:
    """Raise `NotReplayed` for what no replay of SGLang can do."""
    if (config.get("drafts") or {}).get("speculative_algorithm"):
        raise NotReplayed("it decoded with drafts, which are not replayed on SGLang", where=where)


def refuse_requests_that_are_not_replayed(trace: Trace) -> None:
    """Raise `NotReplayed` for requests that no replay of SGLang can make again.

    Admission keeps all of the room free that a request which ignores the end of a sequence may
    take, and a share of it for any other: without that being told, it is another admission.
    """
    if trace.manifest.producer != "sglang":
        return
    arrived = trace.lifecycle.filter(event="arrive").collect()
    if arrived["cause"].str.starts_with(TURN_OF).any():
        raise NotReplayed("its requests are turns of streaming sessions, which keep their pages"
                          " between turns and are not replayed", where=trace.name)  # fmt: skip
    if arrived["lora"].null_count() < len(arrived):
        raise NotReplayed("its requests ask for LoRA adapters, which are not replayed on SGLang",
                          where=trace.name)  # fmt: skip
    if arrived["ignore_eos"].null_count():
        raise NotReplayed(
            "it does not tell which requests ignore the end of a sequence, by which SGLang"
            " reserves room", where=trace.name, todo="record it again",
        )  # fmt: skip
