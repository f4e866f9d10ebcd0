"""What a request's time can go to: every nanosecond of a latency has exactly one of these causes.

The order is that in which a bar is stacked: first what kept a request out of a batch, then what its
batches did, then what nobody can tell.
"""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.ingest.schema import WHAT_BLOCKS

QUEUE, PARKED, WAITING = "queue", "parked", "waiting"


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
    Cause("no-seat", QUEUE, "every running slot was taken"),
    Cause("no-budget", QUEUE, "the step's token budget was spent"),
    Cause("chunk", QUEUE, "the step's token budget was spent, and a prefill chunk was part of it"),
    Cause("bucket", QUEUE, "another bucket was run"),
    Cause("phase", QUEUE, "running, while steps of the other kind went first"),
    Cause("head", QUEUE, "behind the head of the queue; what the head lacked is not recorded"),
    Cause("step", QUEUE, "arrived while a step ran, and was first considered after it"),
    Cause("encoder-budget", QUEUE, "the encoder's budget for the step was spent"),
    Cause("lora", QUEUE, "all LoRA adapters that fit were in use, and its own was not among them"),
    Cause("preemption", QUEUE, "a request was preempted in the step, so none was admitted"),
    Cause("selection", QUEUE, "it fitted, but the scheduler's second stage did not select it"),
    Cause("pause", QUEUE, "the engine was paused"),
    Cause("dp-throttle", QUEUE, "prefills were held back to keep the steps of all ranks alike"),
    Cause("grammar", PARKED, "not ready: its grammar was being compiled"),
    Cause("remote-kv", PARKED, "not ready: its KV was on its way from another machine"),
    Cause("prefetch", PARKED, "not ready: its KV was on its way from another tier of memory"),
    Cause("streaming-input", PARKED, "not ready: its next input had not come"),
    Cause("stale-output", PARKED, "not ready: an output from before its preemption was under way"),
    Cause("last-token", PARKED, "its last token was being computed, and it needed no further step"),
    Cause(PARKED, PARKED, "not ready: it waited for something other than room, or to be noticed"),
    Cause(WAITING, QUEUE, "in the queue; why it was not admitted is not recorded"),
    Cause("other", QUEUE, "left out for a reason of the engine's own: see `decisions`"),
    Cause("preempted", "preempted", "preempted, until it was resumed"),
    Cause("recompute", "recompute", "in a batch, computing again what a preemption discarded"),
    Cause("prefill", "prefill", "in a batch, computing its prompt"),
    Cause("decode", "decode", "in a batch, generating"),
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
    Cause("idle", "idle", "in no batch, and no step ran"),
    Cause("unknown", "unknown", "a step ran, and what it did for the request is not recorded"),
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
