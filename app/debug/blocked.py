"""What blocks a request, in a few words: each word of the schema as it is said in a sentence."""

from __future__ import annotations

BLOCKED_BY = {
    "kv-block": "too few KV blocks were free",
    "kv-token": "too few tokens of the KV pool were free",
    "slot": "no slot was free",
    "slot-tokens": "it is longer than a slot holds",
    "seat": "every running slot was taken",
    "token-budget": "the step's token budget was spent",
    "encoder-budget": "the encoder's budget for the step was spent",
    "lora": "all LoRA adapters that fit were in use, and its own was not among them",
    "queue": "it stood behind a request that was left out",
    "bucket": "another bucket was run",
    "phase": "steps of the other kind went first",
    "grammar": "its grammar was being compiled",
    "remote-kv": "its KV was on its way from another machine",
    "prefetch": "its KV was on its way from another tier of memory",
    "streaming-input": "its next input had not come",
    "stale-output": "an output from before its preemption was under way",
    "last-token": "its last token was being computed, and it needed no further step",
    "preemption": "a request was preempted in this step, so none was admitted",
    "pause": "the engine was paused",
    "dp-throttle": "prefills were held back to keep the steps of all ranks alike",
    "selection": "it fitted, but the scheduler's second stage did not select it",
    "core-group": "no core group was free",
    "core": "no core of its kind took another block",
}
TOLD_BY_ENGINES = (
    "kv-block", "kv-token", "slot", "slot-tokens", "seat", "token-budget", "queue", "bucket",
    "phase", "core-group", "core", "preemption",
)  # fmt: skip
"""Of what an engine counts, and of a preemption, its own reason says enough."""


def because(reason: str | None, resource: str | None) -> str:
    """Why, in the engine's words, and in ours where it has none or they do not say what blocks."""
    ours = BLOCKED_BY.get(resource or "", "")
    if not reason:
        return ours
    return reason if not ours or resource in TOLD_BY_ENGINES else f"{reason} ({ours})"
