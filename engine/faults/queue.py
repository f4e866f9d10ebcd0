"""Bugs of `waiting-queue`: what keeps a request waiting that could be let in, each public."""

from __future__ import annotations

from stepscope.engine.faults.fault import Fault

QUEUE = "waiting-queue"

QUEUE_FAULTS = (
    Fault(
        "prompts-always-first",
        QUEUE,
        "decodes run when no prompt can, and with a stream of prompts one always can (sglang "
        "32549)",
        settings={"workload": "stream"},
    ),
    Fault(
        "full-since-the-last-chunk",
        QUEUE,
        "the last chunk of a prompt counts as one request more, and the batch as full until "
        "somebody ends (sglang 35537)",
        settings={"workload": "four-prompts"},
    ),
    Fault(
        "ready-not-looked-at",
        QUEUE,
        "requests that were not ready are looked at by steps that let somebody in, and none does "
        "while prompts take the whole budget (vLLM 53130)",
        settings={"workload": "parked"},
    ),
    Fault(
        "blocked-head-holds-all",
        QUEUE,
        "nobody is looked at behind a request that lacks KV blocks, however little he needs (vLLM "
        "33499)",
        settings={"workload": "heavy-head"},
    ),
    Fault(
        "passed-without-bound",
        QUEUE,
        "a request that lacks KV blocks is passed by all that fit: it never gets them (vLLM 33499)",
        settings={"workload": "heavy-head"},
    ),
    Fault(
        "half-the-pool-each",
        QUEUE,
        "two requests get half of the KV blocks each for what comes from elsewhere, and neither "
        "has the rest (vLLM 40968)",
        settings={"workload": "half-the-pool"},
    ),
    Fault(
        "never-fits-and-waits",
        QUEUE,
        "a request that is longer than the KV pool is tried in every step, and nobody is told "
        "(vllm-ascend 17143)",
        settings={"workload": "too-long"},
    ),
)
