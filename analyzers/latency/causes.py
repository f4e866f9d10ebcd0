"""What a request's time can go to: every nanosecond of a latency has exactly one of these causes.

The order is that in which a bar is stacked: first what kept a request out of a batch, then what its
batches did, then what nobody can tell.
"""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.ingest.schema import WHAT_BLOCKS

QUEUE, PARKED = "queue", "parked"


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause; those of one `group` are one thing in a picture, and apart in a table."""

    name: str
    group: str
    meaning: str

    @property
    def column(self) -> str:
        """Name of the column that holds its time, `no_blocks_ns`."""
        return f"{self.name.replace('-', '_')}_ns"


CAUSES: tuple[Cause, ...] = (
    Cause("front-end", "front-end", "received, and not yet in the engine's queue"),
    Cause("no-blocks", QUEUE, "too few KV blocks were free, for it or for the head it was behind"),
    Cause("no-seat", QUEUE, "every running slot was taken, and it or the head was to have one"),
    Cause("no-budget", QUEUE, "the step's token budget was spent"),
    Cause("chunk", QUEUE, "the step's token budget was spent, and a prefill chunk was part of it"),
    Cause("bucket", QUEUE, "another bucket was run"),
    Cause("phase", QUEUE, "running, while steps of the other kind went first"),
    Cause("head", QUEUE, "behind the head of the queue, and what that lacked is not told"),
    Cause("step", QUEUE, "came while a step was under way, at the end of which it was looked at"),
    Cause("encoder-budget", QUEUE, "what the encoder may compute in a step was spent"),
    Cause("lora", QUEUE, "as many adapters (LoRA) were in use as fit, and its own was not"),
    Cause("preemption", QUEUE, "somebody was preempted in the step, so nobody was let in"),
    Cause("selection", QUEUE, "it would have fitted, and the second stage did not select it"),
    Cause("pause", QUEUE, "the engine was paused"),
    Cause("dp-throttle", QUEUE, "prefills were held back so that the ranks' steps are alike"),
    Cause("grammar", PARKED, "not ready: its grammar was being compiled"),
    Cause("remote-kv", PARKED, "not ready: its KV was on its way from another machine"),
    Cause("prefetch", PARKED, "not ready: its KV was on its way from another tier of memory"),
    Cause("streaming-input", PARKED, "not ready: its next input had not come"),
    Cause("stale-output", PARKED, "not ready: an output from before its preemption was under way"),
    Cause("last-token", PARKED, "its last token was under way, and it needed no other"),
    Cause(PARKED, PARKED, "not ready: it waited for something beside room, or to be noticed then"),
    Cause("other", QUEUE, "left out for a reason of the engine's own: see `decisions`"),
    Cause("preempted", "preempted", "thrown out, until it was resumed"),
    Cause("recompute", "recompute", "in a batch, to compute again what a preemption threw away"),
    Cause("prefill", "prefill", "in a batch, to compute its prompt"),
    Cause("decode", "decode", "in a batch, to generate"),
    Cause("delivery", "delivery", "its first token, or its end, had not reached the client"),
    Cause("gemm", "gemm", "the GPU multiplied matrices"),
    Cause("attention", "attention", "the GPU computed attention"),
    Cause("kernel", "kernel", "the GPU executed another kernel"),
    Cause("communication", "communication", "in a collective, while nothing was computed"),
    Cause("copy", "copy", "the GPU copied or filled memory, and executed nothing else"),
    Cause("gpu-wait", "gpu-wait", "what was launched had not begun, or the CPU waited for the GPU"),
    Cause("launch", "launch", "the CPU was in a step, and had given the GPU nothing to execute"),
    Cause("formed", "dispatch", "in a batch that was formed and had not begun to run"),
    Cause("dispatch", "dispatch", "in a batch of which no core was executing anything"),
    Cause("idle", "idle", "in no batch, and no step was under way"),
    Cause("unknown", "unknown", "a step was under way, and what it was to the request is not told"),
)  # fmt: skip
BY_NAME = {cause.name: cause for cause in CAUSES}
GROUPS = tuple(dict.fromkeys(cause.group for cause in CAUSES))

# Which cause a decision's `resource` stands for.
OF_RESOURCE = {
    "kv-block": "no-blocks",
    "kv-token": "no-blocks",
    "seat": "no-seat",
    "slot": "no-seat",
    "slot-tokens": "other",
    "token-budget": "no-budget",
    "bucket": "bucket",
    "phase": "phase",
    "queue": "head",
}
# The other words of the schema are causes themselves.
OF_RESOURCE |= {word: word for word in WHAT_BLOCKS if word in BY_NAME}
